package script

import (
	"errors"
	"regexp"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/dop251/goja"

	"weir/internal/record"
)

// The interpreter has no bound of its own for memory, and what it does within one call of a built-in function no clock can
// end. So a script's memory is bounded twice: a call that would make one huge value is refused (guards), and a script that
// grows many values is ended when the process has grown with it (watch). Both go by script.max_memory.

// A script needs guards if its text can reach what they guard: by name, or by a name that it computes. Most cannot, and
// installing them takes longer than such scripts run.
var (
	reaching = regexp.MustCompile(`repeat|pad(Start|End)|Array|Buffer|length|Object|Reflect|Function|constructor|eval|\\[ux]|\[`)
	literal  = regexp.MustCompile(`\[\s*("[^"\\]*"|'[^'\\]*'|\d+)?\s*\]`) // a member by a name that is written out, or an empty list
)

func needsGuards(source string) bool {
	return reaching.MatchString(literal.ReplaceAllString(source, "$1"))
}

// guards replaces the built-in functions that make much of little. Its arguments are how many characters a text and how many
// elements an array may have, and a function that throws.
var guards = goja.MustCompile("guards", `(function (chars, elements, refuse) {
	"use strict";
	var apply = Reflect.apply, define = Object.defineProperty, text = String, number = Number;
	function replace(on, name, make) {
		var f = on[name];
		if (typeof f === "function") define(on, name, {configurable: true, enumerable: false, writable: true, value: make(f)});
	}
	replace(String.prototype, "repeat", function (f) {
		return function repeat(count) {
			if (this == null) return apply(f, this, [count]);
			var s = text(this), n = number(count);
			if (n < Infinity && s.length * n > chars) refuse();
			return apply(f, s, [n]);
		};
	});
	["padStart", "padEnd"].forEach(function (name) {
		replace(String.prototype, name, function (f) {
			return function (length, fill) {
				var n = number(length);
				if (n > chars) refuse();
				return apply(f, this, [n, fill]);
			};
		});
	});
	Object.getOwnPropertyNames(Array.prototype).forEach(function (name) {
		if (name === "constructor" || name === "push" || name === "pop") return;
		replace(Array.prototype, name, function (f) {
			return function () {
				if (this != null && this.length > elements) refuse();
				return apply(f, this, arguments);
			};
		});
	});
	replace(Array.prototype, "join", function (f) {
		return function join(separator) {
			if (this != null && separator !== undefined) {
				separator = text(separator);
				if (this.length * separator.length > chars) refuse();
			}
			return apply(f, this, [separator]);
		};
	});
})`, true)

// bulk is the globals that reserve memory by number. Scripts of this dialect know none of them.
var bulk = []string{
	"ArrayBuffer", "SharedArrayBuffer", "DataView", "Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array",
	"Int32Array", "Uint32Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array",
}

// guard bounds what one call of a built-in function may make.
func (c *call) guard() error {
	global := c.vm.GlobalObject()
	for _, name := range bulk {
		if err := global.Delete(name); err != nil {
			return err
		}
	}
	install, err := c.vm.RunProgram(guards)
	if err != nil {
		return err
	}
	f, _ := goja.AssertFunction(install)
	most := c.r.opt.Config.MaxMemory
	_, err = f(goja.Undefined(), c.vm.ToValue(most/4), c.vm.ToValue(most/64), c.vm.ToValue(func(goja.FunctionCall) goja.Value {
		c.throw(c.greedy())
		return nil
	}))
	return err
}

func (c *call) greedy() *record.Error {
	return record.Errorf(record.TooLarge, "", "the script takes more than %d bytes of memory; see script.max_memory", c.r.opt.Config.MaxMemory)
}

// errMemory ends a script that takes too much memory.
var errMemory = errors.New("memory")

// Scripts are looked at when they have run for watchAfter, and every watchEvery from then on.
const (
	watchAfter = 100 * time.Millisecond
	watchEvery = 50 * time.Millisecond
)

// watch ends the script when the memory of the process has grown by more than script.max_memory while it computed. Memory is
// not told by script: of several that compute at the time all are ended. Those that sleep are spared.
func (c *call) watch() (stop func()) {
	before := heap()
	var mu sync.Mutex
	var timer *time.Timer
	over := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(watchAfter, func() {
		if !c.sleeping.Load() && grown(before, c.r.opt.Config.MaxMemory) {
			c.vm.Interrupt(errMemory)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if !over {
			timer.Reset(watchEvery)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}

// collecting lets one at a time find out what is garbage.
var collecting sync.Mutex

// grown reports whether the heap, without garbage, is more than max bytes larger than before.
func grown(before uint64, max int) bool {
	if heap() <= before+uint64(max) {
		return false
	}
	collecting.Lock()
	defer collecting.Unlock()
	if heap() <= before+uint64(max) {
		return false
	}
	runtime.GC()
	return heap() > before+uint64(max)
}

// heap is how many bytes live and not yet collected objects take.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
