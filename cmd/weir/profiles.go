package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// serveProfiles answers go tool pprof on an address of this machine, apart from the listeners that everybody reaches.
func serveProfiles(at string) (stop func(), err error) {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, fmt.Errorf("telemetry.pprof: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go srv.Serve(l) // ends with Close
	return func() { srv.Close() }, nil
}
