package main

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/config"
	"weir/internal/gate"
)

type hubCommand struct {
	general `embed:""`
	door    `embed:""`
	Backend string `help:"Where the backends listen, with commas between." placeholder:"ADDR" group:"Settings"`
}

// Help is the command's longer help.
func (hubCommand) Help() string {
	return `A hub speaks the protocols and admits requests; its backends (weir backend) have the database, the definitions and the users. Any number of hubs may stand before the same backends, behind any load balancer. Of a project folder it reads weir.yaml only.

Hub and backends know each other by certificates of one authority, or for trials on one machine by a key that they share. A call goes to the backend with the fewest under way; one that is lost with its backend is sent again to another only if nothing can happen twice by it.

Examples:
  WEIR_REMOTE_KEY=$(openssl rand -hex 16) ; export WEIR_REMOTE_KEY
  weir backend & weir hub --backend 127.0.0.1:8090

  weir hub --backend db1:8090,db2:8090 --listen 0.0.0.0:8443 --tls-cert web.pem --tls-key web.key \
    --set remote.tls.cert=hub.pem --set remote.tls.key=hub.key --set remote.tls.ca=ca.pem`
}

// read are the settings of a hub.
func (c *hubCommand) read() (*config.Effective, error) {
	return c.load(append(c.flags(), flag("remote.backends", c.Backend, "--backend"))...)
}

// Run serves until the context ends.
func (c *hubCommand) Run(ctx context.Context, s streams) error {
	e, err := c.read()
	if err != nil {
		return err
	}
	tuneCollector(e.Limits.Memory, e.Gate.Bytes.Limit)
	n, err := newHub(ctx, e, newLog(s.err, e.Log))
	if err != nil {
		return err
	}
	n.regated = func(g *gate.Config) { tuneCollector(e.Limits.Memory, g.Bytes.Limit) }
	if at := e.Telemetry.Pprof; at != "" {
		stop, err := serveProfiles(at)
		if err != nil {
			return errors.Join(err, n.close())
		}
		defer stop()
	}
	for _, a := range n.Addrs {
		fmt.Fprintf(s.out, "weir hub of %s at %s://%s\n", named(&e.Config), scheme(&e.Config), a)
	}
	stop := reloads(ctx, n, c.read)
	defer stop()
	return n.Serve(ctx)
}
