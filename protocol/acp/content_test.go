package acp

import "testing"

func TestAnAddressOfAFileOfThisMachineHasAPath(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///ws/a%20b.go":      "/ws/a b.go",
		"file://localhost/ws/a.go": "/ws/a.go",
		"file:///ws/a.go#L3-9":     "/ws/a.go",
		"file:///C:/ws/a.go":       "C:/ws/a.go",
		"file://elsewhere/ws/a.go": "",
		"file:a.go":                "",
		"zed:///agent/thread/1":    "",
		"https://example.com/a.go": "",
		"file:///%zz":              "",
		"":                         "",
	} {
		if got, ok := FilePath(uri); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", uri, got, ok)
		}
	}
}

func TestALinkKeepsTheSizeTheClientSays(t *testing.T) {
	size, wrong := int64(12), int64(-1)
	_, parts := Input([]Block{{Type: "resource_link", URI: "zed:///x", Size: &size}, {Type: "resource_link", URI: "zed:///y", Size: &wrong}})
	if len(parts) != 2 || parts[0].Size != 12 || parts[1].Size != 0 {
		t.Errorf("%+v", parts)
	}
}
