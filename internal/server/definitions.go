package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/store"
)

// mediaDocument lists the media types of a definition document. All are parsed in the same way.
var mediaDocument = []string{"application/yaml", "application/json", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain", "application/x-www-form-urlencoded", ""}

// parsed reads the definitions in the body. The errors include references to definitions that do not exist.
func (c *call) parsed() ([]*definition.Definition, error) {
	var defs []*definition.Definition
	var problems definition.Problems
	err := c.body(mediaDocument, func(body []byte, _ string) error {
		defs, problems = definition.ExamineWithin(c.Most, cmp.Or(c.query.Get("file"), "body"), body, c.knowsLanguage)
		return nil
	})
	if err != nil || len(problems) == 0 {
		return defs, err
	}
	more, err := c.Engine.CheckMentions(c.ctx(), defs)
	if err != nil {
		return nil, err
	}
	if len(more) == 0 {
		return nil, problems
	}
	for _, p := range more {
		if !slices.ContainsFunc(problems, func(q definition.Problem) bool { return q.Path == p.Path && q.Line == p.Line }) {
			problems = append(problems, p)
		}
	}
	return nil, problems.Sorted()
}

// knowsLanguage also accepts a language that cannot be looked up at the moment: a worker that does not know it will refuse it.
func (c *call) knowsLanguage(name string) bool {
	known, err := c.Engine.Languages().Knows(c.ctx(), name)
	return known || err != nil
}

func (c *call) define() error {
	defs, err := c.parsed()
	if err != nil {
		return err
	}
	order := engine.DefineOrder{Alias: c.query.Get("alias"), By: c.query.Get("by")}
	stored, err := c.Engine.DefineFor(c.ctx(), defs, order)
	if err != nil {
		return fmt.Errorf("define: %w", err)
	}
	if order.Alias != "" || slices.ContainsFunc(stored, func(d engine.Defined) bool { return d.Created || d.Moved }) {
		c.Engine.Settle(c.ctx()) // so that a submission to another server finds the new versions
	}
	out := api.Defined{Definitions: []api.DefinedVersion{}}
	for _, d := range stored {
		out.Definitions = append(out.Definitions, api.DefinedVersion{Name: d.Name, Version: d.Version, Kind: d.Kind, Created: d.Created, Latest: d.Latest})
	}
	if out.Warnings, err = c.warnings(defs); err != nil {
		return err
	}
	return c.json(http.StatusOK, out)
}

func (c *call) warnings(defs []*definition.Definition) ([]api.FieldError, error) {
	mentions, err := c.Engine.MentionsOfRetired(c.ctx(), defs)
	if err != nil || len(mentions) == 0 {
		return nil, err
	}
	return fieldErrors(mentions), nil
}

func (c *call) validate() error {
	out := api.Validation{Valid: true}
	defs, err := c.parsed()
	if err == nil {
		err = c.Engine.Check(c.ctx(), defs)
	}
	var problems definition.Problems
	switch {
	case errors.As(err, &problems):
		out.Valid, out.Problems = false, fieldErrors(problems)
	case err != nil:
		return err
	}
	for _, d := range defs {
		out.Definitions = append(out.Definitions, api.DefinedVersion{Name: d.Name, Kind: string(d.Kind)})
	}
	if out.Warnings, err = c.warnings(defs); err != nil {
		return err
	}
	return c.json(http.StatusOK, out)
}

func (c *call) definitions() error {
	limit := int(c.number("limit", 100, 1, 1000))
	if err := c.checked(); err != nil {
		return err
	}
	page := api.DefinitionPage{Definitions: []api.Definition{}}
	for after := c.query.Get("cursor"); ; {
		rows, err := c.Engine.Reader().Definitions(c.ctx(), after, limit)
		if err != nil {
			return fmt.Errorf("list definitions: %w", err)
		}
		for _, d := range rows {
			after = d.Name
			if !isDefinition(d) {
				continue
			}
			page.Definitions = append(page.Definitions, api.Definition{Name: d.Name, Version: d.Version, Kind: d.Kind, CreatedAt: d.CreatedAt})
			if len(page.Definitions) == limit {
				page.NextCursor = after
				return c.definitionPage(page)
			}
		}
		if len(rows) < limit {
			return c.definitionPage(page)
		}
	}
}

// definitionPage answers with definitions, and marks those that are retired or paused.
func (c *call) definitionPage(page api.DefinitionPage) error {
	if err := c.markStopped(page.Definitions); err != nil {
		return err
	}
	return c.json(http.StatusOK, page)
}

// markStopped marks definitions that are retired or paused.
func (c *call) markStopped(all []api.Definition) error {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	retired, err := c.Engine.Catalog().Retired(c.ctx(), names)
	if err != nil {
		return err
	}
	paused, err := c.pausedBy()
	if err != nil {
		return err
	}
	for i := range all {
		all[i].Paused = paused(store.PausedAction, all[i].Name)
		if r, ok := retired[all[i].Name]; ok {
			all[i].Retired = &api.Retirement{At: r.At, By: r.By, Reason: r.Reason}
		}
	}
	return nil
}

func (c *call) retire() error {
	var in api.RetireOrder
	if err := c.decodeOptional(&in); err != nil {
		return err
	}
	name := c.r.PathValue("name")
	if _, err := c.Engine.Retire(c.ctx(), name, in.Undo, in.By, in.Reason); err != nil {
		return orNotFound(err)
	}
	c.Engine.Settle(c.ctx()) // so that a submission to another server sees the change
	return c.answerDefinition(name, 0)
}

func (c *call) answerDefinition(name string, version int) error {
	d, err := c.stored(name, version)
	if err != nil {
		return err
	}
	out := []api.Definition{{Name: d.Name, Version: d.Version, Kind: d.Kind, CreatedAt: d.CreatedAt, Document: d.Document}}
	if err := c.markStopped(out); err != nil {
		return err
	}
	return c.json(http.StatusOK, out[0])
}

// isDefinition reports whether a document is an action or a workflow: the store also keeps versions of other documents.
func isDefinition(d store.Definition) bool {
	return d.Kind == string(definition.KindWorkflow) || d.Kind == string(definition.KindAction)
}

func (c *call) definition() error {
	version := int(c.number("version", 0, 1, 1<<31-1))
	if err := c.checked(); err != nil {
		return err
	}
	return c.answerDefinition(c.r.PathValue("name"), version)
}

// versions lists the versions of a definition, newest first. Versions are numbered from 1 without gaps.
func (c *call) versions() error {
	limit := int(c.number("limit", 20, 1, 100))
	before := int(c.number("cursor", 0, 1, 1<<31-1))
	if err := c.checked(); err != nil {
		return err
	}
	name := c.r.PathValue("name")
	latest, err := c.stored(name, 0)
	if err != nil {
		return err
	}
	page := api.DefinitionPage{Definitions: []api.Definition{}}
	version := latest.Version
	if before > 0 {
		version = min(version, before-1)
	}
	for ; version > 0; version-- {
		if len(page.Definitions) == limit {
			page.NextCursor = strconv.Itoa(version + 1)
			break
		}
		d, err := c.Engine.Reader().Definition(c.ctx(), name, version)
		if err != nil {
			return fmt.Errorf("definition %s@%d: %w", name, version, err)
		}
		if !isDefinition(d) {
			continue
		}
		page.Definitions = append(page.Definitions, api.Definition{Name: d.Name, Version: d.Version, Kind: d.Kind, CreatedAt: d.CreatedAt})
	}
	return c.json(http.StatusOK, page)
}

// stored reads a version of a definition; version 0 is the latest.
func (c *call) stored(name string, version int) (d store.Definition, err error) {
	if strings.ContainsRune(name, 0) || !utf8.ValidString(name) {
		return d, notFound("action or workflow", name)
	}
	d, err = c.Engine.Reader().Definition(c.ctx(), name, version)
	if errors.Is(err, store.ErrNotFound) || (err == nil && !isDefinition(d)) {
		return d, orNotFound(c.Engine.Catalog().Unregistered(c.ctx(), name, version))
	}
	if err != nil {
		return d, fmt.Errorf("definition %s: %w", name, err)
	}
	return d, nil
}
