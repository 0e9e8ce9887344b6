package edm

import (
	"strconv"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// kindNames are the names of the kinds in V4 and in V2.
var kindNames = [...][2]string{
	String:         {"Edm.String", "Edm.String"},
	Boolean:        {"Edm.Boolean", "Edm.Boolean"},
	Byte:           {"Edm.Byte", "Edm.Byte"},
	SByte:          {"Edm.SByte", "Edm.SByte"},
	Int16:          {"Edm.Int16", "Edm.Int16"},
	Int32:          {"Edm.Int32", "Edm.Int32"},
	Int64:          {"Edm.Int64", "Edm.Int64"},
	Decimal:        {"Edm.Decimal", "Edm.Decimal"},
	Single:         {"Edm.Single", "Edm.Single"},
	Double:         {"Edm.Double", "Edm.Double"},
	DateTimeOffset: {"Edm.DateTimeOffset", "Edm.DateTime"},
	Date:           {"Edm.Date", "Edm.DateTime"},
	TimeOfDay:      {"Edm.TimeOfDay", "Edm.Time"},
	Duration:       {"Edm.Duration", "Edm.Time"},
	GUID:           {"Edm.Guid", "Edm.Guid"},
	Binary:         {"Edm.Binary", "Edm.Binary"},
	ComplexKind:    {"Edm.ComplexType", "Edm.ComplexType"},
}

// Name is the name of the type in V4: "Edm.Int32".
func (k Kind) Name() string { return kindNames[k][0] }

// NameV2 is the name of the type in V2: "Edm.DateTime" for Date and DateTimeOffset, "Edm.Time" for TimeOfDay and Duration.
func (k Kind) NameV2() string { return kindNames[k][1] }

// String is the name of the type in V4.
func (k Kind) String() string { return k.Name() }

// Numeric reports whether values of the kind are numbers.
func (k Kind) Numeric() bool { return k >= Byte && k <= Double }

// ParseKind finds a primitive type by its name in V4: "Edm.Int32".
func ParseKind(name string) (Kind, bool) {
	for k := range ComplexKind {
		if kindNames[k][0] == name {
			return k, true
		}
	}
	return 0, false
}

// kindsOf are the kinds that a property over a field may have, the default first. A password has none: no service exposes it.
func kindsOf(snap *catalog.Snapshot, f *catalog.Field) []Kind {
	switch f.Type {
	case record.TypeInteger:
		all := []Kind{Int64, Int32, Int16, Byte, SByte}
		switch strings.ToLower(f.Native) {
		case "integer", "int", "int4":
			all[0], all[1] = all[1], all[0]
		case "smallint", "int2":
			all[0], all[2] = all[2], all[0]
		}
		return all
	case record.TypeDecimal:
		return []Kind{Decimal}
	case record.TypeFloat:
		return []Kind{Double, Single}
	case record.TypeBoolean:
		return []Kind{Boolean}
	case record.TypeDateTime:
		return []Kind{DateTimeOffset}
	case record.TypeDate:
		return []Kind{Date}
	case record.TypeDuration:
		return []Kind{Duration}
	case record.TypeReference:
		if ref, err := snap.Table(f.Reference); err == nil && ref.SingleKey() != nil && ref.SingleKey().Type == record.TypeGUID {
			return []Kind{GUID, String}
		}
		return []Kind{String, GUID}
	case record.TypeGUID:
		return []Kind{GUID, String}
	case record.TypeBytes:
		return []Kind{Binary}
	case record.TypeString:
		if strings.HasPrefix(f.Native, "time ") || f.Native == "time" {
			return []Kind{TimeOfDay, String}
		}
		return []Kind{String, TimeOfDay}
	case record.TypeList, record.TypeJournal, record.TypeJSON:
		return []Kind{String}
	}
	return nil
}

// namedKind is the kind that a type name of a definition means, among those that are allowed; "Edm.DateTime" and "Edm.Time",
// the names of V2, mean whichever of their kinds fits.
func namedKind(name string, allowed []Kind) (Kind, bool) {
	for _, k := range allowed {
		if kindNames[k][0] == name || kindNames[k][1] == name {
			return k, true
		}
	}
	return 0, false
}

// everyKind are the kinds of properties that stand over no field: in transport shells, complex types and parameters.
var everyKind = []Kind{
	String, Boolean, Byte, SByte, Int16, Int32, Int64, Decimal, Single, Double, DateTimeOffset, Date, TimeOfDay, Duration, GUID, Binary,
}

// digitsOf reads precision and scale of a stored type such as numeric(16,3), 0 and 0 if it does not say.
func digitsOf(native string) (precision, scale int) {
	_, args, ok := strings.Cut(native, "(")
	if !ok {
		return 0, 0
	}
	first, second, _ := strings.Cut(strings.TrimSuffix(args, ")"), ",")
	precision, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return 0, 0
	}
	scale, err = strconv.Atoi(strings.TrimSpace(second))
	if err != nil || scale < 0 {
		scale = 0
	}
	return precision, scale
}
