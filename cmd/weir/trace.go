package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"weir/internal/dialect"
	"weir/internal/server"
	"weir/internal/telemetry"
)

// tracer makes spans of finished requests: one for the request and one for each item of its batch. Nothing is measured for it
// that the recorder has not measured already, so a request that is not sampled costs nothing more.
type tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// newTracer sends spans to an OTLP endpoint over HTTP. A collector that does not answer costs spans, never requests.
func newTracer(ctx context.Context, c server.Telemetry, service string) (*tracer, error) {
	at := c.OTLP
	if u, err := url.Parse(at); err == nil && strings.Trim(u.Path, "/") == "" {
		at = u.JoinPath("v1/traces").String()
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(at))
	if err != nil {
		return nil, fmt.Errorf("telemetry.otlp: %w", err)
	}
	if service == "" {
		service = "weir"
	}
	return tracerOver(sdk.NewBatchSpanProcessor(exporter), c.Sample, service), nil
}

func tracerOver(to sdk.SpanProcessor, sample float64, service string) *tracer {
	p := sdk.NewTracerProvider(
		sdk.WithSpanProcessor(to), sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(sample))),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", service))),
	)
	return &tracer{p, p.Tracer("weir")}
}

// visit makes the spans of one request. It continues the caller's trace, if the request names one.
func (t *tracer) visit(v *server.Visit) {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(v.Header()))
	r := v.Recorder
	millis := func(name string, d time.Duration) attribute.KeyValue {
		return attribute.Float64(name, float64(d.Microseconds())/1000)
	}
	ctx, span := t.tracer.Start(ctx, v.Method+" "+v.API(), trace.WithTimestamp(r.Begin), trace.WithSpanKind(trace.SpanKindServer))
	defer span.End(trace.WithTimestamp(r.Begin.Add(v.Total)))
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(
		attribute.String("http.request.method", v.Method), attribute.String("url.path", v.Path),
		attribute.Int("http.response.status_code", v.Status), attribute.String("weir.transaction", r.ID),
		attribute.String("weir.dialect", v.Dialect), attribute.String("weir.pool", v.Pool),
		millis("weir.hub_ms", r.Layer(telemetry.Hub)), millis("weir.queue_ms", r.Layer(telemetry.Queue)),
		millis("weir.be_ms", r.Layer(telemetry.BE)), millis("weir.app_ms", r.Layer(telemetry.App)),
		millis("weir.sql_ms", time.Duration(r.SQL.Load())), attribute.Int64("weir.sql_count", r.SQLCount.Load()),
	)
	if v.Identity != nil {
		span.SetAttributes(attribute.String("enduser.id", v.Identity.Actor.Name))
	}
	if v.Status >= 500 && v.Err != nil {
		span.SetStatus(codes.Error, v.Err.Msg)
	}
	for i := range v.Items {
		t.item(ctx, r.Begin, &v.Items[i])
	}
}

func (t *tracer) item(ctx context.Context, begin time.Time, it *dialect.ItemRecord) {
	_, span := t.tracer.Start(ctx, "batch item", trace.WithTimestamp(begin.Add(it.Start)))
	span.SetAttributes(
		attribute.String("weir.item", it.ID), attribute.String("http.request.method", it.Method), attribute.Int("http.response.status_code", it.Status),
		attribute.Float64("weir.sql_ms", float64(it.SQL.Microseconds())/1000), attribute.Int("weir.sql_count", it.SQLCount),
	)
	if it.Status >= 500 {
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(begin.Add(it.Start + it.Time)))
}

// close sends what is left.
func (t *tracer) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return t.provider.Shutdown(ctx)
}
