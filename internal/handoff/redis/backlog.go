package redis

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

func (f *Broker) Backlog(ctx context.Context) (map[brokerrpc.Line]brokerrpc.Depth, error) {
	if err := f.readClock(ctx); err != nil {
		return nil, err
	}
	all := map[brokerrpc.Line]brokerrpc.Depth{}
	for _, line := range brokerrpc.Lines() {
		var d brokerrpc.Depth
		var err error
		if d.Messages, err = f.do(ctx, "XLEN", f.line(line)).AsInt64(); err != nil {
			return nil, failed(ctx, "count messages", err)
		}
		if d.Messages > 0 {
			first, err := f.do(ctx, "XRANGE", f.line(line), "-", "+", "COUNT", "1").AsXRange()
			if err != nil {
				return nil, failed(ctx, "look for the oldest message", err)
			}
			if len(first) > 0 {
				d.Oldest = f.age(first[0].ID)
			}
			// A line that was never used, or whose group is lost, has no count of bytes.
			if text, err := f.do(ctx, "HGET", f.key("bytes"), string(line)).ToString(); err == nil {
				d.Bytes, _ = strconv.ParseInt(text, 10, 64) // scripts have written it
			}
			d.Unread = d.Messages
			if pending, err := f.do(ctx, "XPENDING", f.line(line), group).ToArray(); err == nil && len(pending) > 0 {
				n, _ := pending[0].AsInt64() // the first element is a number
				d.Unread -= n
			}
		}
		all[line] = d
	}
	return all, nil
}

// At most mostListed dead letters are listed. One answer of Redis has at most deadPage of them, because each may have half a
// megabyte.
const (
	mostListed = 1000
	deadPage   = 20
)

func (f *Broker) Dead(ctx context.Context, do brokerrpc.DeadAction) (all []brokerrpc.DeadLetter, err error) {
	if err := f.readClock(ctx); err != nil {
		return nil, err
	}
	newest, err := f.do(ctx, "XREVRANGE", f.key("dead"), "+", "-", "COUNT", "1").AsXRange()
	if err != nil {
		return nil, failed(ctx, "list dead letters", err)
	}
	if len(newest) == 0 {
		return nil, nil
	}
	// Messages that are dead-lettered meanwhile are not listed, including those that were just put back and still cannot be read.
	for from, to := "-", newest[0].ID; len(all) < mostListed; {
		entries, err := f.do(ctx, "XRANGE", f.key("dead"), from, to, "COUNT", strconv.Itoa(deadPage)).AsXRange()
		if err != nil {
			return all, failed(ctx, "list dead letters", err)
		}
		for _, m := range entries {
			all = append(all, f.readDeadLetter(m))
			if err := f.dealWithDead(ctx, do, m); err != nil {
				return all, err
			}
			from = "(" + m.ID
		}
		if len(entries) < deadPage {
			break
		}
	}
	return all, nil
}

func (f *Broker) readDeadLetter(m rueidis.XRangeEntry) brokerrpc.DeadLetter {
	v := m.FieldValues
	tries, _ := strconv.Atoi(v["tries"]) // scripts have written it, and the size
	size, err := strconv.Atoi(v["size"])
	if err != nil {
		size = len(v["l"])
	}
	return brokerrpc.DeadLetter{ID: m.ID, Line: brokerrpc.Line(v["line"]), Reason: v["why"], Tries: tries, Age: f.age(m.ID), Size: size}
}

func (f *Broker) dealWithDead(ctx context.Context, do brokerrpc.DeadAction, m rueidis.XRangeEntry) error {
	if do == brokerrpc.ListDead {
		return nil
	}
	back := "0"
	if do == brokerrpc.RedriveDead {
		back = "1"
	}
	line, message := m.FieldValues["line"], m.FieldValues["l"]
	err := redriveScript.Exec(ctx, f.client, []string{f.key("dead"), f.line(brokerrpc.Line(line)), f.key("bytes")},
		[]string{m.ID, line, message, back}).Error()
	if err != nil {
		return failed(ctx, "put a dead letter back", err)
	}
	return nil
}
