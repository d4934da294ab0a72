package closedloop

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"reflect"
	"sort"
)

var fingerprints = maphash.MakeSeed()

// fingerprint is a number that differs for values that differ, however deep.
func fingerprint(values ...any) uint64 {
	var h maphash.Hash
	h.SetSeed(fingerprints)
	for _, value := range values {
		imprint(&h, reflect.ValueOf(value))
	}
	return h.Sum64()
}

func imprint(h *maphash.Hash, v reflect.Value) {
	number := func(n uint64) {
		_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, n))
	}
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			number(1)
		} else {
			number(0)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		number(v.Uint())
	case reflect.Float32, reflect.Float64:
		number(math.Float64bits(v.Float()))
	case reflect.String:
		number(uint64(v.Len()))
		_, _ = h.WriteString(v.String())
	case reflect.Slice, reflect.Array:
		number(uint64(v.Len()))
		for i := range v.Len() {
			imprint(h, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			imprint(h, v.Field(i))
		}
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			number(0)
			return
		}
		number(1)
		// A time's location is the same for all of them.
		if v.Type().String() != "*time.Location" {
			imprint(h, v.Elem())
		}
	case reflect.Map:
		imprintMap(h, v)
	}
}

// imprintMap adds a map's entries in the order of their own fingerprints.
func imprintMap(h *maphash.Hash, v reflect.Value) {
	entries := make([]uint64, 0, v.Len())
	for iter := v.MapRange(); iter.Next(); {
		var e maphash.Hash
		e.SetSeed(fingerprints)
		imprint(&e, iter.Key())
		imprint(&e, iter.Value())
		entries = append(entries, e.Sum64())
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i] < entries[j] })
	imprint(h, reflect.ValueOf(entries))
}
