package script

import (
	"errors"
	"fmt"
	"time"
)

// Config bounds what a script may use.
type Config struct {
	// Time is how long one call may run, waiting included.
	//
	// Defaults to 30s.
	Time time.Duration `yaml:"time"`
	// MaxSleep is how long one gs.sleep may take; a longer one ends after it.
	//
	// Defaults to 10s.
	MaxSleep time.Duration `yaml:"max_sleep"`
	// MaxDepth is how deep calls may nest.
	//
	// Defaults to 500.
	MaxDepth int `yaml:"max_depth"`
	// MaxResult is how many bytes the answer of a script may have.
	//
	// Defaults to 10 MiB.
	MaxResult int `yaml:"max_result"`
	// MaxMemory is how many bytes of memory a script may take: a call that would make a larger value fails, and a script is
	// ended when the memory of the process grows by more while it computes. It is no exact account.
	//
	// Defaults to 256 MiB.
	MaxMemory int `yaml:"max_memory"`
	// MaxRows is how many records one query of a script may find; a query that finds more fails, unless it has a limit of its own.
	//
	// Defaults to 10,000.
	MaxRows int `yaml:"max_rows"`
	// MaxLog is how many lines one call may log; what is beyond is counted and dropped. A line is cut at 1,000 bytes.
	//
	// Defaults to 100.
	MaxLog int `yaml:"max_log"`
}

// Defaults fills what is zero with its default.
func (c *Config) Defaults() {
	set := func(n *int, d int) {
		if *n == 0 {
			*n = d
		}
	}
	if c.Time == 0 {
		c.Time = 30 * time.Second
	}
	if c.MaxSleep == 0 {
		c.MaxSleep = 10 * time.Second
	}
	set(&c.MaxDepth, 500)
	set(&c.MaxResult, 10<<20)
	set(&c.MaxMemory, 256<<20)
	set(&c.MaxRows, 10_000)
	set(&c.MaxLog, 100)
}

// Validate returns all faults of the settings, each with its name.
func (c *Config) Validate() error {
	var faults []error
	if c.Time < time.Millisecond {
		faults = append(faults, fmt.Errorf("script.time: %v is less than 1ms", c.Time))
	}
	if c.MaxSleep < 0 {
		faults = append(faults, fmt.Errorf("script.max_sleep: %v is negative", c.MaxSleep))
	}
	if c.MaxMemory < 1<<20 {
		faults = append(faults, fmt.Errorf("script.max_memory: %d is less than 1 MiB", c.MaxMemory))
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"max_depth", c.MaxDepth}, {"max_result", c.MaxResult}, {"max_rows", c.MaxRows}, {"max_log", c.MaxLog}} {
		if f.n < 1 {
			faults = append(faults, fmt.Errorf("script.%s: %d is less than 1", f.name, f.n))
		}
	}
	return errors.Join(faults...)
}
