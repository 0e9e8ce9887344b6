package config

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"

	"weir/internal/gate"
)

// PatchGate lays a JSON document over settings of the gate, as weir.yaml lies over those of the profile, and returns the result,
// checked. What the document does not name stays; lists are replaced; null removes a pool. Unknown names are errors.
func PatchGate(settings gate.Config, patch []byte) (gate.Config, error) {
	if err := decode(patch, &settings); err != nil { // JSON is YAML
		return settings, told(err, "gate:")
	}
	return settings, settings.Validate()
}

// GateJSON writes settings of the gate in JSON, by the names that they have in weir.yaml.
func GateJSON(settings *gate.Config) ([]byte, error) {
	text, err := yaml.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("write the gate's settings: %w", err)
	}
	var plain map[string]any
	if err := yaml.Unmarshal(text, &plain); err != nil {
		return nil, fmt.Errorf("write the gate's settings: %w", err)
	}
	return json.Marshal(plain)
}
