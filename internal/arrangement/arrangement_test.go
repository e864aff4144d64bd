package arrangement

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawn draws a graph without cycles: a node can only need earlier nodes.
func drawn(t *rapid.T) [][]int {
	needs := make([][]int, rapid.IntRange(0, 60).Draw(t, "nodes"))
	for i := range needs {
		if i > 0 {
			needs[i] = rapid.SliceOfNDistinct(rapid.IntRange(0, i-1), 0, min(i, 5), rapid.ID[int]).Draw(t, "needs")
		}
	}
	return needs
}

// Boxes never overlap, edges lead forwards and end at their boxes, everything is within the layout, and the same graph gives the same
// layout.
func TestLayoutsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		needs := drawn(t)
		l := Of(needs)
		if len(l.Nodes) != len(needs) {
			t.Fatalf("%d nodes became %d", len(needs), len(l.Nodes))
		}
		byLayer := map[int][]Node{}
		for i, n := range l.Nodes {
			if n.X < 0 || n.Y < 0 || n.X+BoxWidth > l.Width+0.01 || n.Y+BoxHeight > l.Height+0.01 {
				t.Fatalf("node %d at %v lies outside %v × %v", i, n, l.Width, l.Height)
			}
			byLayer[n.Layer] = append(byLayer[n.Layer], n)
		}
		for layer, ns := range byLayer {
			slices.SortFunc(ns, func(a, b Node) int { return int(100 * (a.Y - b.Y)) })
			for i := 1; i < len(ns); i++ {
				if ns[i].X != ns[0].X || ns[i].Y-ns[i-1].Y < BoxHeight+gapY-0.02 {
					t.Fatalf("layer %d: %v and %v are too close", layer, ns[i-1], ns[i])
				}
			}
		}
		at := 0
		for to, from := range needs {
			for _, f := range from {
				e := l.Edges[at]
				at++
				if e.From != f || e.To != to || l.Nodes[f].Layer >= l.Nodes[to].Layer {
					t.Fatalf("edge %+v stands where %d → %d should", e, f, to)
				}
				first, last := e.Points[0], e.Points[len(e.Points)-1]
				if first.X != l.Nodes[f].X+BoxWidth || last.X != l.Nodes[to].X {
					t.Fatalf("edge %+v does not join its boxes", e)
				}
				if !slices.IsSortedFunc(e.Points, func(a, b Point) int { return int(a.X - b.X) }) {
					t.Fatalf("edge %+v runs backwards", e)
				}
			}
		}
		if at != len(l.Edges) {
			t.Fatalf("%d edges became %d", at, len(l.Edges))
		}
		if !reflect.DeepEqual(l, Of(needs)) {
			t.Fatal("the same graph gave another layout")
		}
	})
}

// With creates no cycle, even for random needs. It keeps all needs of the graph, and each added one that is not on a cycle.
func TestNeedsOfAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		needs := drawn(t)
		also := make([][]int, len(needs))
		for i := range also {
			for _, f := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(needs)-1), 0, min(len(needs), 3), rapid.ID[int]).Draw(t, "also") {
				if f != i && !slices.Contains(needs[i], f) {
					also[i] = append(also[i], f)
				}
			}
		}
		all := With(needs, also)
		l := Of(all)
		for to, from := range all {
			if !slices.Equal(from[:len(needs[to])], needs[to]) {
				t.Fatalf("node %d needs %v, and now %v", to, needs[to], from)
			}
			for _, f := range from {
				if l.Nodes[f].Layer >= l.Nodes[to].Layer {
					t.Fatalf("%d → %d does not lead forwards: there is a cycle", f, to)
				}
			}
		}
		forwards := make([][]int, len(needs))
		for i, from := range also {
			forwards[i] = slices.DeleteFunc(slices.Clone(from), func(f int) bool { return f > i })
		}
		for i, from := range With(needs, forwards) {
			if len(from) != len(needs[i])+len(forwards[i]) {
				t.Fatalf("node %d needs %v of %v and %v, which have no cycle", i, from, needs[i], forwards[i])
			}
		}
	})
}

func TestKnownLayouts(t *testing.T) {
	t.Run("a chain is a straight line", func(t *testing.T) {
		l := Of([][]int{nil, {0}, {1}, {2}})
		for i, n := range l.Nodes {
			if n.Y != 0 || n.Layer != i {
				t.Errorf("node %d at %+v", i, n)
			}
		}
		if l.Height != BoxHeight {
			t.Errorf("height %v, want %v", l.Height, BoxHeight)
		}
	})
	t.Run("a diamond is symmetric", func(t *testing.T) {
		l := Of([][]int{nil, {0}, {0}, {1, 2}})
		middle := (l.Nodes[1].Y + l.Nodes[2].Y) / 2
		if l.Nodes[0].Y != middle || l.Nodes[3].Y != middle {
			t.Errorf("%+v", l.Nodes)
		}
	})
	t.Run("two crossed chains are drawn side by side", func(t *testing.T) {
		needs := [][]int{nil, nil, {1}, {0}, {2}, {3}}
		d := layered(needs)
		d.order()
		place := make([]int, len(d.layer))
		for _, l := range d.layers {
			for i, v := range l {
				place[v] = i
			}
		}
		if c := d.crossings(place); c != 0 {
			t.Errorf("%d crossings are left", c)
		}
	})
	t.Run("an edge passes beside the box that it skips", func(t *testing.T) {
		l := Of([][]int{nil, {0}, {0, 1}})
		long := l.Edges[1]
		if long.From != 0 || long.To != 2 || len(long.Points) != 4 {
			t.Fatalf("%+v", long)
		}
		if y := long.Points[1].Y; y > l.Nodes[1].Y && y < l.Nodes[1].Y+BoxHeight {
			t.Errorf("it passes at %v through the box at %v", y, l.Nodes[1].Y)
		}
	})
}

// random is a pseudo-random graph with the given number of nodes and edges, the same at every call.
func random(nodes, edges int) [][]int {
	r := rand.New(rand.NewPCG(1, 2))
	needs := make([][]int, nodes)
	for range edges {
		to := 1 + r.IntN(nodes-1)
		if from := r.IntN(to); !slices.Contains(needs[to], from) {
			needs[to] = append(needs[to], from)
		}
	}
	return needs
}

func BenchmarkLayout(b *testing.B) {
	chain := make([][]int, 500)
	for i := 1; i < len(chain); i++ {
		chain[i] = []int{i - 1}
	}
	for name, needs := range map[string][][]int{
		"nodes=1000/edges=2000": random(1000, 2000), "chain=500": chain, "nodes=10000/edges=200000": random(10_000, 200_000),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Of(needs)
			}
		})
	}
}
