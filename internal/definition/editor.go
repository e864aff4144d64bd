package definition

import _ "embed" // for the schema

//go:embed pawl.schema.json
var editorSchema []byte

// EditorSchema is the JSON Schema of definition documents, for editors. It
// knows fields, types and ranges; Parse knows all the rest. The caller must
// not change it.
func EditorSchema() []byte { return editorSchema }
