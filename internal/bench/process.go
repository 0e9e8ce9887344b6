package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server under measurement, or its yardstick.
type process struct {
	cmd *exec.Cmd
	url string // where it answers
	log tail
}

// startTime is how long a process may take to say where it answers: the first start loads the demo's data.
const startTime = time.Minute

// startProcess starts a program and waits until it has printed a URL.
func startProcess(ctx context.Context, program string, args ...string) (*process, error) {
	return startProcessIn(ctx, "", nil, program, args...)
}

// startProcessIn is startProcess in a folder, with more in the program's environment.
func startProcessIn(ctx context.Context, dir string, env []string, program string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, program, args...)}
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), env...)
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = 10 * time.Second
	p.cmd.Stderr = &p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	timer := time.AfterFunc(startTime, func() { p.cmd.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if i := strings.Index(lines.Text(), "http://"); i >= 0 {
			p.url, _, _ = strings.Cut(lines.Text()[i:], " ")
			p.url = strings.TrimRight(p.url, "'\"")
			go io.Copy(io.Discard, out) // ends with the process
			return p, nil
		}
	}
	err = p.cmd.Wait()
	return nil, fmt.Errorf("%s %s printed no URL: %v %s", program, strings.Join(args, " "), err, p.log.text)
}

// stop ends the process and waits for it. A nil process is none.
func (p *process) stop() {
	if p == nil {
		return
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(20*time.Second, func() { p.cmd.Process.Kill() })
	defer kill.Stop()
	p.cmd.Wait()
}

// resident is the process's resident memory in MiB.
func (p *process) resident() (float64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kib / 1024, err
		}
	}
	return 0, errors.New("the system does not tell the resident memory of a process")
}

// watch samples the resident memory while f runs and returns the highest.
func (p *process) watch(f func() error) (high float64, err error) {
	done := make(chan struct{})
	sampled := make(chan float64)
	go func() {
		var high float64
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			if v, err := p.resident(); err == nil {
				high = max(high, v)
			}
			select {
			case <-done:
				sampled <- high
				return
			case <-tick.C:
			}
		}
	}()
	err = f()
	close(done)
	return <-sampled, err
}

// loadIn runs a load of GETs in a process of its own: the weir binary as "bench load". It gets one thread, which keeps
// a server of this kind busy, so that it does not take the processors that server and probe share with it.
func loadIn(ctx context.Context, program string, o LoadOptions, d time.Duration) (LoadResult, error) {
	args := []string{
		"bench", "load", o.Request.Path, "--connections", strconv.Itoa(o.Connections), "--duration", d.String(), "--user", o.User,
		"--target", strings.Join(o.Targets, ","), "--session", o.SessionPath,
	}
	if o.Insecure {
		args = append(args, "--insecure")
	}
	var r LoadResult
	out, err := outputIn(ctx, "", []string{"WEIR_TEST_BENCH_PASSWORD=" + o.Password, "GOMAXPROCS=1"}, program, args...)
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	return r, err
}

// output runs a program to its end and returns what it printed.
func output(ctx context.Context, program string, args ...string) ([]byte, error) {
	return outputIn(ctx, "", nil, program, args...)
}

// outputIn is output in a folder, with more in the program's environment.
func outputIn(ctx context.Context, dir string, env []string, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var log tail
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w %s", program, strings.Join(args, " "), err, log.text)
	}
	return out, nil
}

// tail keeps the end of what a process writes to its standard error.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	const most = 2000
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-most):]
	return len(b), nil
}
