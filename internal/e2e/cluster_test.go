package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// cluster is a PostgreSQL server of a test's own, which it may stop and start.
type cluster struct {
	t    testing.TB
	bin  string
	dir  string
	port int
}

// newCluster makes and starts a cluster with fsync on, which ends with the test; nil when this machine has no PostgreSQL.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	bin := os.Getenv("WEIR_TEST_POSTGRES_BIN")
	if bin == "" {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
		slices.Sort(found)
		if len(found) > 0 {
			bin = found[len(found)-1]
		}
	}
	if bin == "" {
		if mustHavePostgres() {
			t.Fatal("WEIR_TEST_POSTGRES_BIN is not set: run the tests through scripts/with-postgres")
		}
		return nil
	}
	// The path of a socket has 107 bytes at most, and postgres must be able to enter every folder on the way.
	dir, err := os.MkdirTemp("/tmp", "weir-e2e-pg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &cluster{t: t, bin: bin, dir: dir, port: freePort(t)}
	if id, as := owner(t); as != nil {
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			t.Fatalf("give %s to %s: %v", dir, id, err)
		}
	}
	c.run("initdb", "-D", c.data(), "-U", "postgres", "--encoding=UTF8", "--locale=C.UTF-8", "--auth=trust", "--no-sync")
	c.start()
	t.Cleanup(func() { c.stop("immediate") })
	return c
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *cluster) url() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", c.port)
}

func (c *cluster) start() {
	c.run("pg_ctl", "-D", c.data(), "-l", filepath.Join(c.dir, "log"), "-w", "-t", "60", "start",
		"-o", fmt.Sprintf("-c listen_addresses=127.0.0.1 -c port=%d -c unix_socket_directories=%s -c fsync=on -c max_connections=100", c.port, c.dir))
}

// stop ends the server: "fast" ends its sessions, "immediate" leaves as after a crash.
func (c *cluster) stop(mode string) { c.run("pg_ctl", "-D", c.data(), "-m", mode, "-w", "stop") }

// run runs a command of PostgreSQL, which root must run as the user postgres.
func (c *cluster) run(name string, args ...string) {
	c.t.Helper()
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	if _, as := owner(c.t); as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	}
	// pg_ctl leaves the server behind, which would keep a pipe open: its output goes to a file.
	out, err := os.OpenFile(filepath.Join(c.dir, "out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		c.t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
		c.t.Errorf("%s %v: %v\n%s%s", name, args, err, said, log)
	}
}

// owner is who PostgreSQL runs as: nil for ourselves.
func owner(t testing.TB) (string, *syscall.Credential) {
	t.Helper()
	if os.Getuid() != 0 {
		return "", nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return u.Username, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
