package session

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// fill gives everything v is made of a value that is not zero.
func fill(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	switch v.Interface().(type) {
	case json.RawMessage:
		v.SetBytes([]byte(`{"a":1}`))
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 3, 5, 8, 15, 30, 120e6, time.UTC)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if !v.Field(i).CanSet() {
				t.Fatalf("%s.%s cannot be copied", path, name)
			}
			fill(t, v.Field(i), path+"."+name)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), path+"[0]")
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, path+" key")
		fill(t, value, path+"[]")
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("s")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(0.5)
	default:
		t.Fatalf("%s is a %s", path, v.Kind())
	}
}

// differences lists where two values differ.
func differences(a, b reflect.Value, path string) []string {
	if reflect.DeepEqual(a.Interface(), b.Interface()) {
		return nil
	}
	var out []string
	switch {
	case a.Kind() == reflect.Struct:
		for i := range a.NumField() {
			out = append(out, differences(a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name)...)
		}
	case a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil():
		return differences(a.Elem(), b.Elem(), path)
	case a.Kind() == reflect.Slice && a.Len() == b.Len():
		for i := range a.Len() {
			out = append(out, differences(a.Index(i), b.Index(i), path+"[]")...)
		}
	}
	if out == nil {
		return []string{path}
	}
	return out
}

// A state is copied when a session is opened, when its lease is taken and when an append fails: what the copy lacked would be forgotten then,
// such as the reason of a cancel, the rule behind an answer, or the parts of an input.
func TestACopyOfAStateLacksNothing(t *testing.T) {
	full := newState()
	fill(t, reflect.ValueOf(full).Elem(), "State")
	full.Version = stateVersion
	bare := newState() // what there is none of is none in the copy
	bare.Head, bare.Serial = 1, &OpenTurn{Calls: []*CallState{{}}, Actions: []*Action{{}}, Inputs: []*Input{{}}}
	for _, st := range []*State{full, bare} {
		if lost := differences(reflect.ValueOf(st).Elem(), reflect.ValueOf(st.clone()).Elem(), "State"); len(lost) > 0 {
			t.Errorf("a copy is another one in\n%s", strings.Join(lost, "\n"))
		}
	}
	if st := loadState([]byte(`{"Version":1,"Metadata":null}`)); st.Metadata != nil { // as older versions wrote it
		t.Errorf("metadata %s", st.Metadata)
	}
}
