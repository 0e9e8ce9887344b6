package now

import (
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// get reads GET /table/{table}/{sys_id}. Parameters of lists sent along mean nothing here.
func (q *request) get() (*dialect.Exchange, error) {
	key, err := parseKey(q.table, q.at.rest[1])
	if err != nil {
		return nil, err
	}
	p, err := q.projection()
	if err != nil {
		return nil, err
	}
	x := q.exchange(record.Op{Verb: record.Get, Table: q.table.Name, Key: key, Return: p.paths})
	x.Ops = q.readEntries(p, key, x.Ops)
	x.Reply = func(out []record.Outcome, a *wire.Answer) {
		switch {
		case out[0].Err != nil:
			q.fail(a, out[0].Err)
		case out[0].Rows == nil || out[0].Rows.Len() == 0:
			q.fail(a, noRecord())
		default:
			q.withHistory(a, p, out)
		}
	}
	return x, nil
}
