package payload

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/problem"
)

// Ceilings are the highest limits that an operator allows for one program, sizes in bytes. Zero: only the bounds of api.CodeLimits apply.
type Ceilings struct {
	Memory, Disk, Output, Stack int64
	Pids                        int
	// Interactive is the highest limits.wall and limits.cpu for an interactive program, which holds a slot even while it gets no input.
	Interactive time.Duration
}

// Code lists the limits of code that exceed the ceilings: for the program, its cases, and its checker or interactor.
func (c Ceilings) Code(code *api.Code) error {
	all := c.above(c.above(nil, "limits", code.Limits), "compile_limits", code.CompileLimits)
	if code.Interactive {
		all = c.aboveTime(all, "limits.wall", code.Limits.Wall)
		all = c.aboveTime(all, "limits.cpu", code.Limits.CPU)
	}
	for i := range code.Cases {
		all = c.above(all, fmt.Sprintf("cases[%d].limits", i), code.Cases[i].Limits)
	}
	if at, judge := Judge(code); judge != nil {
		all = c.above(all, at+".limits", judge.Limits)
	}
	return orNil(all)
}

// Container lists the limits of a container that exceed the ceilings.
func (c Ceilings) Container(asked *api.Container) error {
	return orNil(c.above(nil, "limits", asked.Limits))
}

// orNil turns an empty List into a nil error.
func orNil(all problem.List) error {
	if len(all) == 0 {
		return nil
	}
	return all
}

func (c Ceilings) above(all problem.List, place string, asked api.CodeLimits) problem.List {
	for _, l := range []struct {
		field, setting string
		asked          api.Size
		most           int64
	}{
		{"memory", "max_memory", asked.Memory, c.Memory},
		{"disk", "max_disk", asked.Disk, c.Disk},
		{"output", "max_output", asked.Output, c.Output},
		{"stack", "max_stack", asked.Stack, c.Stack},
	} {
		if most := api.Size(l.most); most > 0 && l.asked > most {
			all = append(all, tooMuch(place+"."+l.field, l.asked.String(), most.String(), l.setting))
		}
	}
	if c.Pids > 0 && asked.Pids > c.Pids {
		all = append(all, tooMuch(place+".pids", strconv.Itoa(asked.Pids), strconv.Itoa(c.Pids), "max_pids"))
	}
	return all
}

func (c Ceilings) aboveTime(all problem.List, place string, asked api.Duration) problem.List {
	if most := api.Duration(c.Interactive); most > 0 && asked > most {
		all = append(all, tooMuch(place, asked.String(), most.String(), "max_interactive"))
	}
	return all
}

func tooMuch(place, asked, most, setting string) problem.Problem {
	return problem.Problem{Path: place, Value: asked, Message: fmt.Sprintf("%s is more than one program is given here: %s", asked, most),
		Fix: fmt.Sprintf("ask for %s at most, or raise the setting %s where the worker runs", most, setting)}
}
