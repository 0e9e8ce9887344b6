package script

import (
	"errors"
	"strings"

	"github.com/dop251/goja"
)

// fault is an error of sn_ws_err: what a script answers instead of a result.
type fault struct {
	status          int
	message, detail string
}

// faultStatus is the constructors of sn_ws_err.
var faultStatus = map[string]int{
	"BadRequestError": 400, "NotFoundError": 404, "NotAcceptableError": 406, "ConflictError": 409, "UnsupportedMediaTypeError": 415, "ServiceError": 500,
}

// faultSpace is the object sn_ws_err.
type faultSpace struct {
	c    *call
	made map[string]goja.Value
}

// Get is the constructor named key.
func (s *faultSpace) Get(key string) goja.Value {
	status, ok := faultStatus[key]
	if !ok {
		return nil
	}
	if v, ok := s.made[key]; ok {
		return v
	}
	v := s.c.vm.ToValue(func(call goja.ConstructorCall) *goja.Object {
		var message string
		if m := call.Argument(0); !goja.IsUndefined(m) {
			message = m.String()
		}
		return s.c.newFault(status, message, "")
	})
	if s.made == nil {
		s.made = map[string]goja.Value{}
	}
	s.made[key] = v
	return v
}

// Set refuses.
func (s *faultSpace) Set(string, goja.Value) bool { return false }

// Has reports whether there is a constructor named key.
func (s *faultSpace) Has(key string) bool { return faultStatus[key] != 0 }

// Delete refuses.
func (s *faultSpace) Delete(string) bool { return false }

// Keys is empty.
func (s *faultSpace) Keys() []string { return nil }

// newFault is an error object with the setters that ServiceError has.
func (c *call) newFault(status int, message, detail string) *goja.Object {
	f := &fault{status, message, detail}
	o := c.vm.NewObject()
	o.Set("message", message)
	o.Set("status", status)
	o.Set("setStatus", func(call goja.FunctionCall) goja.Value {
		f.status = int(call.Argument(0).ToInteger())
		o.Set("status", f.status)
		return goja.Undefined()
	})
	o.Set("setMessage", func(call goja.FunctionCall) goja.Value {
		f.message = text(call, 0)
		o.Set("message", f.message)
		return goja.Undefined()
	})
	o.Set("setDetail", func(call goja.FunctionCall) goja.Value {
		f.detail = text(call, 0)
		return goja.Undefined()
	})
	o.Set("toString", func(goja.FunctionCall) goja.Value { return c.vm.ToValue(f.message) })
	if c.faults == nil {
		c.faults = map[*goja.Object]*fault{}
	}
	c.faults[o] = f
	return o
}

// faultOf is what an error value means: one of sn_ws_err, or anything else that was thrown or handed to setError.
func (c *call) faultOf(v goja.Value) fault {
	if o, ok := v.(*goja.Object); ok {
		if f := c.faults[o]; f != nil {
			return *f
		}
	}
	return fault{status: 500, message: v.String()}
}

// thrown is the fault of an error that ended the script.
func (c *call) thrown(err error) fault {
	var ex *goja.Exception
	if errors.As(err, &ex) {
		f := c.faultOf(ex.Value())
		if o, ok := ex.Value().(*goja.Object); !ok || c.faults[o] == nil {
			// Where it happened helps whoever wrote the script.
			f.detail, _, _ = strings.Cut(ex.String(), "\n")
			if stack := ex.Stack(); len(stack) > 0 {
				f.detail += " at " + stack[0].Position().String()
			}
		}
		return f
	}
	var over *goja.StackOverflowError
	if errors.As(err, &over) {
		return fault{status: 500, message: "too many nested calls", detail: "see script.max_depth"}
	}
	return fault{status: 500, message: err.Error()}
}
