package release

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"

	"k8s.io/component-base/version"
)

// Release is what a program is.
type Release struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// This is what this program is.
func This() Release {
	info, _ := debug.ReadBuildInfo()
	return of(version.Get().GitVersion, info)
}

// of is the version that the build was given, else that of the module and its commit, which
// the go command writes into every program.
func of(given string, info *debug.BuildInfo) Release {
	r := Release{Version: given, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info != nil {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				r.Commit = setting.Value
			}
		}
	}
	// component-base's placeholder, which only its own releases replace.
	if given == "" || strings.Contains(given, "$Format") {
		r.Version = "(devel)"
		if info != nil {
			r.Version = cmp.Or(info.Main.Version, r.Version)
		}
	}
	return r
}
