package server

import (
	"net/http"
	"strconv"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/engine/catalog"
)

func renderAlias(a *catalog.Alias) api.Alias {
	out := api.Alias{Name: a.Name, Alias: a.Alias, Number: a.Number, To: []api.AliasTarget{}, At: a.At, By: a.By, Reason: a.Reason}
	for _, to := range a.To {
		out.To = append(out.To, api.AliasTarget(to))
	}
	return out
}

func renderAliases(all []catalog.Alias) api.AliasPage {
	out := api.AliasPage{Aliases: make([]api.Alias, len(all))}
	for i := range all {
		out.Aliases[i] = renderAlias(&all[i])
	}
	return out
}

func (c *call) moveAlias(in *api.AliasOrder) error {
	o := engine.AliasOrder{Back: in.Back, Remove: in.Remove, By: in.By, Reason: in.Reason}
	for _, to := range in.To {
		o.To = append(o.To, catalog.AliasTarget(to))
	}
	a, moved, err := c.Engine.MoveAlias(c.ctx(), c.r.PathValue("name"), c.r.PathValue("alias"), o)
	if err != nil {
		return orNotFound(err)
	}
	// A submission that follows may reach another server, which must see the change. A move that changes nothing may repeat
	// one that was made just now.
	c.Engine.Settle(c.ctx())
	out := renderAlias(&a)
	out.Moved = moved
	return c.json(http.StatusOK, out)
}

func (c *call) aliases() error {
	name := c.r.PathValue("name")
	if _, err := c.stored(name, 0); err != nil {
		return err
	}
	all, err := c.Engine.Catalog().Aliases(c.ctx(), name)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, renderAliases(all))
}

func (c *call) aliasMoves() error {
	limit := int(c.number("limit", 20, 1, 100))
	below := int(c.number("cursor", 0, 1, 1<<31-1))
	if err := c.checked(); err != nil {
		return err
	}
	all, err := c.Engine.Catalog().AliasMoves(c.ctx(), c.r.PathValue("name"), c.r.PathValue("alias"), below, limit)
	if err != nil {
		return orNotFound(err)
	}
	out := renderAliases(all)
	if n := len(all); n == limit && all[n-1].Number > 1 {
		out.NextCursor = strconv.Itoa(all[n-1].Number)
	}
	return c.json(http.StatusOK, out)
}
