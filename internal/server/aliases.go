package server

import (
	"net/http"
	"strconv"

	"github.com/pawl-run/pawl/api"
)

func (c *call) moveAlias(in *api.AliasOrder) error {
	a, moved, err := c.Engine.MoveAlias(c.ctx(), c.r.PathValue("name"), c.r.PathValue("alias"), *in)
	if err != nil {
		return orNotFound(err)
	}
	// The next submission may reach another server, which must see the change. A move that changes nothing may repeat an earlier one that
	// other servers have not seen yet.
	c.Engine.Settle(c.ctx())
	a.Moved = moved
	return c.json(http.StatusOK, a)
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
	return c.json(http.StatusOK, api.AliasPage{Aliases: all})
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
	out := api.AliasPage{Aliases: all}
	if n := len(all); n == limit && all[n-1].Number > 1 {
		out.NextCursor = strconv.Itoa(all[n-1].Number)
	}
	return c.json(http.StatusOK, out)
}
