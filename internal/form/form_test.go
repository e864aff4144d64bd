package form

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestFields(t *testing.T) {
	for schema, want := range map[string]string{
		``:                   "json *",
		`true`:               "json *",
		`{"type":"boolean"}`: "yes_no *",
		`{"type":"object"}`:  "json *",
		`{"required":["b","a","gone"],"properties":{"z":{"type":"string","maxLength":500},"c":{"enum":["x",1,null],"default":1},"a":{"type":"integer"},"b":{"type":"boolean","title":"Ship?","default":true}}}`: "b yes_no *=yes, a whole *, c choice=1, z long",
		`{"properties":{"a":{"type":"integer","minimum":3,"maximum":9},"b":{"type":"integer","minimum":2.5},"c":{"type":"number","maximum":2.5,"minimum":null},"d":{"type":"number","minimum":"<"}}}`:           "a whole 3..9, b whole, c number ..2.5, d number",
		`{"properties":{"n":{"type":"number","default":1.5},"l":{"type":"array","default":[1]},"m":{"type":["string","null"]},"s":{"type":"string","default":"<b>"}}}`:                                          `l json=[1], m json, n number=1.5, s text=<b>`,
	} {
		var all []string
		for _, f := range Fields(json.RawMessage(schema)) {
			say := strings.TrimSpace(f.Name + " " + string(f.Kind))
			if f.Required {
				say += " *"
			}
			if f.Least+f.Most != "" {
				say += " " + f.Least + ".." + f.Most
			}
			if f.Given != "" {
				say += "=" + f.Given
			}
			all = append(all, say)
		}
		if got := strings.Join(all, ", "); got != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
	}
}

func TestValue(t *testing.T) {
	fields := Fields(json.RawMessage(`{"properties":{"b":{"type":"boolean"},"c":{"enum":["x",1]},"i":{"type":"integer"},"j":{"type":"array"},"s":{"type":"string"}},"required":["s"]}`))
	byName := map[string]*Field{}
	for i := range fields {
		byName[fields[i].Name] = &fields[i]
	}
	for filled, want := range map[string]string{
		"b=yes": "true", "b=No": "false", "b=": "", "b=maybe": "answer yes or no",
		"c=x": `"x"`, "c=1": "1", "c=2": "choose one of x, 1",
		"i= 7 ": "7", "i=7.5": "7.5", "i=true": "write a number", "i=1e": "write a number",
		"j=[1]": "[1]", "j=[": `write JSON, such as "text" or [1, 2]`,
		"s= <é ": `" \u003cé "`, "s=": `""`,
	} {
		name, text, _ := strings.Cut(filled, "=")
		v, err := byName[name].Value(text)
		got := string(v)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", filled, got, want)
		}
	}
}

func TestAnswer(t *testing.T) {
	two := Fields(json.RawMessage(`{"properties":{"a":{},"b":{}}}`))
	one := Fields(nil)
	for _, c := range []struct {
		fields []Field
		values []json.RawMessage
		want   string
	}{
		{two, []json.RawMessage{json.RawMessage(`1`), nil}, `{"a":1}`}, {two, []json.RawMessage{nil, nil}, `{}`},
		{one, []json.RawMessage{json.RawMessage(`[1]`)}, `[1]`}, {one, []json.RawMessage{nil}, `null`},
	} {
		if got, err := Answer(c.fields, c.values); err != nil || string(got) != c.want {
			t.Errorf("%s %v, want %s", got, err, c.want)
		}
	}
}

// Each choice can be selected, and gives its own value, even texts that look like another value, and those that do not fit on a line.
func TestEveryChoiceIsItself(t *testing.T) {
	t.Parallel()
	for _, enum := range []string{
		`[1,"1",null,"null",true,"true",1.5]`, `["","a"," a","a ","a\nb"]`, `["\"a\"","a"]`, `["\"1\"","1",1]`, `[9007199254740993,9007199254740992,"9007199254740993"]`, `[[1],{"a":1},"[1]"]`, `["é","e\u0301"]`,
	} {
		var values []json.RawMessage
		if err := json.Unmarshal([]byte(enum), &values); err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			f := Fields(json.RawMessage(`{"properties":{"v":{"enum":` + enum + `,"default":` + string(v) + `}}}`))[0]
			for _, text := range []string{f.Choices[i].Text, f.Given} {
				if got, err := f.Value(text); err != nil || string(got) != string(v) {
					t.Errorf("%s: %q gives %s, %v; want %s", enum, text, got, err, v)
				}
			}
		}
	}
}
