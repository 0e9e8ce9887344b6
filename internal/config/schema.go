package config

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// Schema is the JSON Schema (draft 2020-12) of weir.yaml, by which editors complete and check it.
func Schema() []byte {
	root := schemaOf(reflect.TypeFor[Config]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "The settings of a weir project: weir.yaml"
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("config: schema: " + err.Error())
	}
	return append(text, '\n')
}

func schemaOf(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return map[string]any{"type": "string", "description": "a duration such as 500ms, 30s, 5m or 24h"}
	case t == reflect.TypeFor[Addresses]():
		return map[string]any{"type": []string{"string", "array"}, "items": map[string]any{"type": "string"}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Struct:
		properties := map[string]any{}
		fieldsOf(t, properties)
		return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	case reflect.Map:
		// A null removes a pool that the profile made.
		return map[string]any{"type": "object", "additionalProperties": map[string]any{"anyOf": []any{schemaOf(t.Elem()), map[string]any{"type": "null"}}}}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	default:
		return map[string]any{"type": "string"}
	}
}

func fieldsOf(t reflect.Type, properties map[string]any) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			fieldsOf(f.Type, properties)
		case name != "" && name != "-":
			properties[name] = schemaOf(f.Type)
		}
	}
}
