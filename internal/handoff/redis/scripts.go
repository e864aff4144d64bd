package redis

import "github.com/redis/rueidis"

// Each script does in one step what must be atomic. All keys of a transport have one hash tag, so that a cluster keeps them together.

// sendScript puts a message into a line unless the line is full. An empty line counts as having no bytes, whatever its counter
// says, because an operator may have deleted the line.
//
//	KEYS line, bytes   ARGV name of the line, message, most bytes, most messages
var sendScript = rueidis.NewLuaScript(`
local held, messages = tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or '0'), redis.call('XLEN', KEYS[1])
if messages == 0 and held ~= 0 then
	held = 0
	redis.call('HSET', KEYS[2], ARGV[1], 0)
end
if held + #ARGV[2] > tonumber(ARGV[3]) or messages >= tonumber(ARGV[4]) then
	return 0
end
redis.call('XADD', KEYS[1], '*', 'l', ARGV[2])
redis.call('HINCRBY', KEYS[2], ARGV[1], #ARGV[2])
return 1`)

// settleScript deletes messages that have been handled. It must run even when Redis has reached maxmemory, because otherwise
// full lines could not be emptied.
//
//	KEYS line, bytes   ARGV name of the line, group, and of each message its id and its length
var settleScript = rueidis.NewLuaScript(`#!lua flags=allow-oom
for i = 3, #ARGV, 2 do
	redis.call('XACK', KEYS[1], ARGV[2], ARGV[i])
	if redis.call('XDEL', KEYS[1], ARGV[i]) == 1 then
		redis.call('HINCRBY', KEYS[2], ARGV[1], -tonumber(ARGV[i + 1]))
	end
end
if redis.call('XLEN', KEYS[1]) == 0 then
	redis.call('HSET', KEYS[2], ARGV[1], 0)
end
return 1`)

// deadLetterScript moves a message to the dead letters. It keeps at most 10,000 dead letters, at most so many bytes, and none older than 7
// days; the oldest are deleted first. The text of an ask is not kept, because asks are never sent again.
//
// A key of another type ends the script before it has changed anything.
//
//	KEYS line, bytes, dead   ARGV name of the line, group, id, message, reason, tries, most bytes
var deadLetterScript = rueidis.NewLuaScript(`#!lua flags=allow-oom
redis.call('HLEN', KEYS[2])
if redis.call('XLEN', KEYS[3]) == 0 then
	redis.call('HSET', KEYS[2], 'dead', 0)
end
redis.call('XACK', KEYS[1], ARGV[2], ARGV[3])
if redis.call('XDEL', KEYS[1], ARGV[3]) == 1 then
	redis.call('HINCRBY', KEYS[2], ARGV[1], -#ARGV[4])
elseif ARGV[1] ~= 'ask' then
	return 0
end
local message, size = ARGV[4], #ARGV[4]
if ARGV[1] == 'ask' then
	message = ''
end
redis.call('XADD', KEYS[3], '*', 'l', message, 'size', size, 'line', ARGV[1], 'why', ARGV[5], 'tries', ARGV[6])
local held = redis.call('HINCRBY', KEYS[2], 'dead', #message)
local oldest = tonumber(redis.call('TIME')[1]) - 7 * 86400
for i = 1, 1000 do
	local first = redis.call('XRANGE', KEYS[3], '-', '+', 'COUNT', 1)[1]
	local at = tonumber(string.match(first[1], '^%d+')) / 1000
	local left = redis.call('XLEN', KEYS[3])
	if left == 1 or left <= 10000 and held <= tonumber(ARGV[7]) and at >= oldest then
		break
	end
	redis.call('XDEL', KEYS[3], first[1])
	held = redis.call('HINCRBY', KEYS[2], 'dead', 0 - #first[2][2])
end
return 1`)

// redriveScript puts a dead letter back into its line, or drops it. Asks are dropped, because their workers have asked again. A key of
// another type ends the script before it has changed anything.
//
//	KEYS dead, line, bytes   ARGV id, name of the line, message, "1" to put it back
var redriveScript = rueidis.NewLuaScript(`#!lua flags=allow-oom
redis.call('XLEN', KEYS[2])
redis.call('HLEN', KEYS[3])
if redis.call('XDEL', KEYS[1], ARGV[1]) == 0 then
	return 0
end
redis.call('HINCRBY', KEYS[3], 'dead', 0 - #ARGV[3])
if ARGV[4] == '1' and ARGV[2] ~= 'ask' then
	redis.call('XADD', KEYS[2], '*', 'l', ARGV[3])
	redis.call('HINCRBY', KEYS[3], ARGV[2], #ARGV[3])
end
return 1`)

// trimScript removes asks that no server has read in time.
//
//	KEYS line, bytes   ARGV name of the line, seconds
var trimScript = rueidis.NewLuaScript(`#!lua flags=allow-oom
local now = redis.call('TIME')
redis.call('XTRIM', KEYS[1], 'MINID', (tonumber(now[1]) - tonumber(ARGV[2])) .. '000')
if redis.call('XLEN', KEYS[1]) == 0 then
	redis.call('HSET', KEYS[2], ARGV[1], 0)
end
return 1`)

// replyQueueScript makes a reply queue that Redis deletes by itself when it is not touched.
//
//	KEYS reply queue   ARGV milliseconds
var replyQueueScript = rueidis.NewLuaScript(`
local id = redis.call('XADD', KEYS[1], '*', 'hello', '')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return id`)

// forgetScript deletes the consumers of dead processes. A consumer that has messages stays until others have claimed them, because deleting
// it would lose them.
//
//	KEYS line   ARGV group, idle milliseconds
var forgetScript = rueidis.NewLuaScript(`#!lua flags=allow-oom
local gone = 0
for _, c in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
	local of = {}
	for i = 1, #c, 2 do of[c[i]] = c[i + 1] end
	if of.pending == 0 and of.idle > tonumber(ARGV[2]) then
		redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], of.name)
		gone = gone + 1
	end
end
return gone`)

// repairScript deletes keys that have another type, and returns their names.
//
//	KEYS bytes, meta, and the streams
var repairScript = rueidis.NewLuaScript(`#!lua flags=allow-oom
local deleted = {}
for i, key in ipairs(KEYS) do
	local length = redis.pcall(i <= 2 and 'HLEN' or 'XLEN', key)
	if type(length) == 'table' and string.find(length.err or '', 'WRONGTYPE') then
		redis.call('DEL', key)
		deleted[#deleted + 1] = key
	end
end
return deleted`)
