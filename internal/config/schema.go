package config

import (
	_ "embed"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"weir/internal/dialect/ords"
)

// Schema is the JSON Schema (draft 2020-12) of weir.yaml, by which editors complete and check it.
func Schema() []byte {
	root := schemaOf(reflect.TypeFor[Config]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "The settings of a weir project: weir.yaml"
	properties := root["properties"].(map[string]any)
	for _, a := range aliases {
		properties[a.ords] = map[string]any{"description": "ORDS' name of " + a.ours + "."}
	}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("config: schema: " + err.Error())
	}
	return append(text, '\n')
}

func schemaOf(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return map[string]any{"type": "string"}
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
			of := schemaOf(f.Type)
			key := t.String() + "." + name
			if text := descriptions[key]; text != "" {
				if f.Type == reflect.TypeFor[time.Duration]() {
					text += " A duration such as 500ms, 30s, 5m or 24h."
				}
				of["description"] = text
			}
			if list := enums[key]; list != nil {
				of["enum"] = list
			}
			properties[name] = of
		}
	}
}

// enums are the values of settings that take only some.
var enums = map[string][]string{
	"config.Config.profile": {ProfileAuto, ProfileServiceNow},
	"server.Log.level":      {"debug", "info", "warn", "error"},
	"server.Log.format":     {"text", "json"},
	"server.Log.requests":   {"all", "slow", "none"},

	"ords.Options.error_format": {ords.ErrorAuto, ords.ErrorJSON, ords.ErrorHTML},

	"odata.DoorOptions.csrf": {"auto", "on", "off"},
}

//go:embed descriptions.json
var described []byte

// descriptions say what each setting means, by type and name: what the source says about its field.
var descriptions = func() (all map[string]string) {
	if err := json.Unmarshal(described, &all); err != nil {
		panic("config: descriptions: " + err.Error())
	}
	return all
}()
