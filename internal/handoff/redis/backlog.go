package redis

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/pawl-run/pawl/internal/handoff/post"
)

// Backlog implements post.Office.
func (f *Office) Backlog(ctx context.Context) (map[post.Line]post.Depth, error) {
	if err := f.readClock(ctx); err != nil {
		return nil, err
	}
	all := map[post.Line]post.Depth{}
	for _, line := range post.Lines() {
		var d post.Depth
		var err error
		if d.Letters, err = f.do(ctx, "XLEN", f.line(line)).AsInt64(); err != nil {
			return nil, failed(ctx, "count letters", err)
		}
		if d.Letters > 0 {
			first, err := f.do(ctx, "XRANGE", f.line(line), "-", "+", "COUNT", "1").AsXRange()
			if err != nil {
				return nil, failed(ctx, "look for the oldest letter", err)
			}
			if len(first) > 0 {
				d.Oldest = f.age(first[0].ID)
			}
			// A line that was never used, or whose group is lost, has no count of bytes.
			if text, err := f.do(ctx, "HGET", f.key("bytes"), string(line)).ToString(); err == nil {
				d.Bytes, _ = strconv.ParseInt(text, 10, 64) // scripts have written it
			}
			d.Unread = d.Letters
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

// Dead implements post.Office.
func (f *Office) Dead(ctx context.Context, do post.DeadAction) (all []post.DeadLetter, err error) {
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
	// Letters that are buried meanwhile are not listed, including those that were just put back and still cannot be read.
	for from, to := "-", newest[0].ID; len(all) < mostListed; {
		entries, err := f.do(ctx, "XRANGE", f.key("dead"), from, to, "COUNT", strconv.Itoa(deadPage)).AsXRange()
		if err != nil {
			return all, failed(ctx, "list dead letters", err)
		}
		for _, m := range entries {
			all = append(all, f.deadLetter(m))
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

func (f *Office) deadLetter(m rueidis.XRangeEntry) post.DeadLetter {
	v := m.FieldValues
	tries, _ := strconv.Atoi(v["tries"]) // scripts have written it, and the size
	size, err := strconv.Atoi(v["size"])
	if err != nil {
		size = len(v["l"])
	}
	return post.DeadLetter{ID: m.ID, Line: post.Line(v["line"]), Reason: v["why"], Tries: tries, Age: f.age(m.ID), Size: size}
}

func (f *Office) dealWithDead(ctx context.Context, do post.DeadAction, m rueidis.XRangeEntry) error {
	if do == post.ListDead {
		return nil
	}
	back := "0"
	if do == post.RedriveDead {
		back = "1"
	}
	line, letter := m.FieldValues["line"], m.FieldValues["l"]
	err := redriveScript.Exec(ctx, f.client, []string{f.key("dead"), f.line(post.Line(line)), f.key("bytes")}, []string{m.ID, line, letter, back}).Error()
	if err != nil {
		return failed(ctx, "put a dead letter back", err)
	}
	return nil
}
