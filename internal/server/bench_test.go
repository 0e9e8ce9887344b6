package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
)

// BenchmarkServer_Line is what the door costs a request: everything but the dialect and the engine.
func BenchmarkServer_Line(b *testing.B) {
	n := newNode(b, &fakeExec{}, nil)
	c, err := net.Dial("tcp", n.addr)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	request := fmt.Appendf(nil, "GET /x/thing?a=1 HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic ZXZlOmFwcGxl\r\nAccept: application/json\r\n\r\n", n.addr)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(request); err != nil {
			b.Fatal(err)
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != 200 {
			b.Fatal(res, err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			b.Fatal(err)
		}
	}
}
