package dialect

import (
	"errors"
	"fmt"
	"time"
)

// BatchConfig bounds what a batch may ask for.
type BatchConfig struct {
	// MaxItems is how many items one batch may hold; a larger one is refused as a whole.
	//
	// Defaults to 10,000.
	MaxItems int `yaml:"max_items"`
	// MaxInput is how many bytes the decoded body of one item may have; the items after one that is larger stay unserviced.
	//
	// Defaults to 5 MiB, at most 10 MiB.
	MaxInput int `yaml:"max_input"`
	// MaxOutput is how many bytes the answer of one item may have; a larger one is replaced by an error.
	//
	// Defaults to 10 MiB.
	MaxOutput int `yaml:"max_output"`
	// MaxTotal is how many bytes all answers of a batch may have together; answers beyond it are replaced by errors.
	//
	// Defaults to 64 MiB.
	MaxTotal int `yaml:"max_total"`
	// MaxChain is how many items may depend on each other in a row: each link is one more round to the engine.
	//
	// Defaults to 20.
	MaxChain int `yaml:"max_chain"`
	// Time is how long a batch may run. What has not begun by then stays unserviced.
	//
	// Defaults to 30s.
	Time time.Duration `yaml:"time"`
	// Parallel bounds the reads and scripts of a batch that are under way at once; connections and permits bound them again.
	// gate.serial_batch makes it 1.
	//
	// Defaults to 64.
	Parallel int `yaml:"parallel"`
	// Headers are names of item headers that scripted endpoints may see beside those that every dialect needs.
	//
	// Defaults to none.
	Headers []string `yaml:"headers"`
}

// Defaults fills what is zero with its default.
func (c *BatchConfig) Defaults() {
	set := func(n *int, d int) {
		if *n == 0 {
			*n = d
		}
	}
	set(&c.MaxItems, 10_000)
	set(&c.Parallel, 64)
	set(&c.MaxInput, 5<<20)
	set(&c.MaxOutput, 10<<20)
	set(&c.MaxTotal, 64<<20)
	set(&c.MaxChain, 20)
	if c.Time == 0 {
		c.Time = 30 * time.Second
	}
}

// Validate returns all faults of the settings, each with its name.
func (c *BatchConfig) Validate() error {
	var faults []error
	check := func(name string, n, most int) {
		if n < 1 || most > 0 && n > most {
			faults = append(faults, fmt.Errorf("now.batch.%s: %d is out of range", name, n))
		}
	}
	check("max_items", c.MaxItems, 0)
	check("max_input", c.MaxInput, 10<<20)
	check("max_output", c.MaxOutput, 0)
	check("max_total", c.MaxTotal, 0)
	check("parallel", c.Parallel, 0)
	check("max_chain", c.MaxChain, 1000)
	if c.Time < time.Millisecond {
		faults = append(faults, fmt.Errorf("now.batch.time: %v is less than 1ms", c.Time))
	}
	for _, name := range c.Headers {
		if sealedHeader(name) {
			faults = append(faults, fmt.Errorf("now.batch.headers: %s comes from the outer request alone", name))
		}
	}
	return errors.Join(faults...)
}
