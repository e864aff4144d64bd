// Package arrangement lays out the tasks of a workflow as a graph that is read from left to right.
//
// It is pure: the same needs give the same layout. The steps are those of a layered drawing (Sugiyama, Tagawa, Toda 1981): each node gets a
// layer, an edge that passes layers gets a bend in each of them, the nodes of a layer are ordered so that few edges cross, and then each is
// moved as near to its neighbours as the order allows.
package arrangement

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Sizes in the layout's units. A drawing scales them: a box becomes as large as its text needs, and the gaps grow with it.
const (
	BoxWidth  = 11.0
	BoxHeight = 3.0
	gapX      = 2.0
	gapY      = 1.0
	bendGap   = 1.0 // the height of an edge in a layer that it passes
)

// maxBends is how many bends a layout may have. 10,000 nodes with 200,000 random edges would have millions of them; beyond the bound the
// longest edges are drawn straight across the layers.
const maxBends = 10_000

// sweeps is how often the order of all layers is improved. After 8 sweeps the count of crossings did not fall any more on random graphs.
const sweeps = 8

// Point is a place in a layout, in its units.
type Point struct{ X, Y float64 }

// Node is the place of a node's box: its upper left corner.
type Node struct {
	Layer int
	Point
}

// Edge leads from a node to one that needs it, through at least two points.
type Edge struct {
	From, To int
	Points   []Point
}

// Layout is a drawing of nodes and edges, in units.
type Layout struct {
	Width, Height float64
	Nodes         []Node // as they were given
	Edges         []Edge // grouped by the node that they lead to, in the order of its needs
}

// Of lays nodes out. needs[i] are the nodes that must have ended before node i; there must be no cycle.
func Of(needs [][]int) Layout {
	if len(needs) == 0 {
		return Layout{}
	}
	d := layered(needs)
	d.order()
	return d.place(needs)
}

// With returns needs together with those in also, for example those of another version of the workflow. It leaves out
// needs in also between two nodes that are on a cycle or between cycles: the result has no cycle.
func With(needs, also [][]int) [][]int {
	all, followers := make([][]int, len(needs)), make([][]int, len(needs))
	for i := range needs {
		all[i] = slices.Concat(needs[i], also[i])
		for _, f := range all[i] {
			followers[f] = append(followers[f], i)
		}
	}
	behind, before := stuck(all, followers), stuck(followers, all)
	for i := range also {
		all[i] = slices.Clone(needs[i])
		for _, f := range also[i] {
			if !(behind[i] && before[i] && behind[f] && before[f]) {
				all[i] = append(all[i], f)
			}
		}
	}
	return all
}

// stuck reports for each node whether it is on a cycle or after one.
func stuck(needs, followers [][]int) []bool {
	open, found := make([]int, len(needs)), make([]bool, len(needs))
	var ready []int
	for i, from := range needs {
		open[i], found[i] = len(from), len(from) > 0
		if !found[i] {
			ready = append(ready, i)
		}
	}
	for ; len(ready) > 0; ready = ready[1:] {
		for _, i := range followers[ready[0]] {
			if open[i]--; open[i] == 0 {
				found[i] = false
				ready = append(ready, i)
			}
		}
	}
	return found
}

// drawing is a graph whose edges join neighbouring layers: the vertices are the nodes, and after them the bends.
type drawing struct {
	layer  []int   // of each vertex
	before [][]int // neighbours in the layer before
	after  [][]int // neighbours in the layer after
	chains [][]int // of each edge, in the order of Layout.Edges: its bends
	nodes  int
	layers [][]int // the vertices of each layer, in the order in which they are drawn
	keys   []float64
	near   []float64 // of median
}

// layered puts each node one layer after the last of its needs and gives bends to edges that pass layers.
func layered(needs [][]int) *drawing {
	n := len(needs)
	d := &drawing{nodes: n, layer: depths(needs)}
	lengths := map[int]int{} // number of edges, by the layers that they pass
	for i, from := range needs {
		for _, f := range from {
			lengths[d.layer[i]-d.layer[f]-1]++
		}
	}
	longest := passable(lengths)
	d.before, d.after = make([][]int, n), make([][]int, n)
	join := func(a, b int) { d.after[a], d.before[b] = append(d.after[a], b), append(d.before[b], a) }
	for i, from := range needs {
		for _, f := range from {
			var chain []int
			if passed := d.layer[i] - d.layer[f] - 1; passed <= longest {
				last := f
				for l := d.layer[f] + 1; l < d.layer[i]; l++ {
					v := len(d.layer)
					d.layer, d.before, d.after = append(d.layer, l), append(d.before, nil), append(d.after, nil)
					chain = append(chain, v)
					join(last, v)
					last = v
				}
				join(last, i)
			}
			d.chains = append(d.chains, chain)
		}
	}
	d.layers = make([][]int, slices.Max(d.layer)+1)
	for v, l := range d.layer {
		d.layers[l] = append(d.layers[l], v)
	}
	return d
}

// depths are the layers of nodes: 0 without needs, else one more than the deepest need (Kahn's order, without recursion).
func depths(needs [][]int) []int {
	open, followers := make([]int, len(needs)), make([][]int, len(needs))
	var ready []int
	for i, from := range needs {
		open[i] = len(from)
		for _, f := range from {
			followers[f] = append(followers[f], i)
		}
		if len(from) == 0 {
			ready = append(ready, i)
		}
	}
	layer := make([]int, len(needs))
	for len(ready) > 0 {
		f := ready[0]
		ready = ready[1:]
		for _, i := range followers[f] {
			layer[i] = max(layer[i], layer[f]+1)
			if open[i]--; open[i] == 0 {
				ready = append(ready, i)
			}
		}
	}
	return layer
}

// passable is the greatest length of an edge that gets bends, so that there are at most maxBends.
func passable(lengths map[int]int) int {
	longest, bends := 0, 0
	for _, l := range slices.Sorted(maps.Keys(lengths)) {
		if bends += l * lengths[l]; bends > maxBends {
			break
		}
		longest = l
	}
	return longest
}

// order sorts each layer by the medians of its neighbours, forwards and backwards in turn, and keeps the best order found (Gansner,
// Koutsofios, North, Vo 1993).
func (d *drawing) order() {
	place := make([]int, len(d.layer))
	for _, l := range d.layers {
		for i, v := range l {
			place[v] = i
		}
	}
	d.keys = make([]float64, len(d.layer))
	best, fewest := clone(d.layers), d.crossings(place)
	for s := 0; s < sweeps && fewest > 0; s++ {
		neighbours := d.before
		if s%2 == 1 {
			neighbours = d.after
		}
		for i := range d.layers {
			l := i
			if s%2 == 1 {
				l = len(d.layers) - 1 - i
			}
			d.sort(l, neighbours, place)
		}
		if c := d.crossings(place); c < fewest {
			best, fewest = clone(d.layers), c
		}
	}
	d.layers = best
}

// sort orders a layer by the median places of its vertices' neighbours; a vertex without any keeps its place.
func (d *drawing) sort(l int, neighbours [][]int, place []int) {
	layer := d.layers[l]
	key := d.keys
	for i, v := range layer {
		key[v] = float64(i)
		if len(neighbours[v]) > 0 {
			key[v] = d.median(neighbours[v], func(u int) float64 { return float64(place[u]) })
		}
	}
	slices.SortStableFunc(layer, func(a, b int) int { return cmp.Compare(key[a], key[b]) })
	for i, v := range layer {
		place[v] = i
	}
}

func (d *drawing) median(of []int, at func(int) float64) float64 {
	xs := d.near[:0]
	for _, v := range of {
		xs = append(xs, at(v))
	}
	slices.Sort(xs)
	d.near = xs
	m := len(xs) / 2
	if len(xs)%2 == 1 {
		return xs[m]
	}
	return (xs[m-1] + xs[m]) / 2
}

// crossings counts the pairs of edges between neighbouring layers that cross: the inversions among the places of their ends, by
// a Fenwick tree (Barth, Jünger, Mutzel 2002).
func (d *drawing) crossings(place []int) int {
	sum := 0
	var tree, ends []int
	for l := 0; l+1 < len(d.layers); l++ {
		tree = append(tree[:0], make([]int, len(d.layers[l+1])+1)...)
		seen := 0
		for _, v := range d.layers[l] {
			ends = ends[:0]
			for _, u := range d.after[v] {
				ends = append(ends, place[u])
			}
			slices.Sort(ends)
			for _, e := range ends {
				upTo := 0
				for i := e + 1; i > 0; i &= i - 1 {
					upTo += tree[i]
				}
				sum += seen - upTo
			}
			for _, e := range ends {
				for i := e + 1; i < len(tree); i += i & -i {
					tree[i]++
				}
				seen++
			}
		}
	}
	return sum
}

func clone(layers [][]int) [][]int {
	out := make([][]int, len(layers))
	for i, l := range layers {
		out[i] = slices.Clone(l)
	}
	return out
}

// place gives each vertex a height and draws the edges.
func (d *drawing) place(needs [][]int) Layout {
	y := make([]float64, len(d.layer)) // of the middles
	for _, l := range d.layers {
		for i := 1; i < len(l); i++ {
			y[l[i]] = y[l[i-1]] + d.apart(l[i-1], l[i])
		}
		for _, v := range l { // around 0, so that a chain beside a wide layer starts at its middle
			y[v] -= (y[l[len(l)-1]] - y[l[0]]) / 2
		}
	}
	for s := range sweeps {
		for i := range d.layers {
			l, neighbours := i, d.before
			if s%2 == 1 {
				l, neighbours = len(d.layers)-1-i, d.after
			}
			d.settle(d.layers[l], neighbours, y)
		}
	}
	out := Layout{Nodes: make([]Node, d.nodes), Width: float64(len(d.layers))*(BoxWidth+gapX) - gapX}
	top, bottom := math.Inf(1), math.Inf(-1)
	for v := range y {
		half := BoxHeight / 2
		if v >= d.nodes {
			half = 0
		}
		top, bottom = min(top, y[v]-half), max(bottom, y[v]+half)
	}
	out.Height = round(bottom - top)
	x := func(layer int) float64 { return float64(layer) * (BoxWidth + gapX) }
	for v := range d.nodes {
		out.Nodes[v] = Node{Layer: d.layer[v], Point: Point{x(d.layer[v]), round(y[v] - BoxHeight/2 - top)}}
	}
	middle := func(v int) float64 { return round(y[v] - top) }
	for i, from := range needs {
		for _, f := range from {
			e := Edge{From: f, To: i, Points: []Point{{x(d.layer[f]) + BoxWidth, middle(f)}}}
			for _, b := range d.chains[len(out.Edges)] {
				// Across the whole layer, so that the edge passes between its boxes and not through them.
				e.Points = append(e.Points, Point{x(d.layer[b]), middle(b)}, Point{x(d.layer[b]) + BoxWidth, middle(b)})
			}
			e.Points = append(e.Points, Point{x(d.layer[i]), middle(i)})
			out.Edges = append(out.Edges, e)
		}
	}
	return out
}

// apart is the least distance between the middles of two neighbours in a layer.
func (d *drawing) apart(a, b int) float64 {
	height := func(v int) float64 {
		if v < d.nodes {
			return BoxHeight + gapY
		}
		return bendGap
	}
	return (height(a) + height(b)) / 2
}

// settle moves the vertices of a layer as near to the medians of their neighbours as their order and distances allow: the least sum of
// squares, found by joining neighbours that block each other (pool adjacent violators).
func (d *drawing) settle(layer []int, neighbours [][]int, y []float64) {
	type block struct {
		sum, weight float64
		count       int
	}
	var blocks []block
	offset := 0.0 // of a vertex from the first one if all are as close as they may be
	offsets := make([]float64, len(layer))
	for i, v := range layer {
		if i > 0 {
			offset += d.apart(layer[i-1], v)
		}
		offsets[i] = offset
		want, weight := y[v], 0.1 // without neighbours: its present place, unless others need it
		if len(neighbours[v]) > 0 {
			want, weight = d.median(neighbours[v], func(u int) float64 { return y[u] }), 1
		}
		if v >= d.nodes {
			weight *= 4 // long edges are straightened before boxes are centred
		}
		blocks = append(blocks, block{(want - offset) * weight, weight, 1})
		for len(blocks) > 1 {
			a, b := &blocks[len(blocks)-2], blocks[len(blocks)-1]
			if a.sum/a.weight <= b.sum/b.weight {
				break
			}
			a.sum, a.weight, a.count = a.sum+b.sum, a.weight+b.weight, a.count+b.count
			blocks = blocks[:len(blocks)-1]
		}
	}
	i := 0
	for _, b := range blocks {
		for range b.count {
			y[layer[i]] = b.sum/b.weight + offsets[i]
			i++
		}
	}
}

// round rounds to hundredths: finer steps are invisible, and the text of a layout is a third as long.
func round(v float64) float64 { return math.Round(v*100) / 100 }
