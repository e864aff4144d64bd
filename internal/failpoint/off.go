//go:build !failpoints

package failpoint

// Hit says that a moment has come.
func Hit(string) {}

// HitAbout is Hit for one document, by its name.
func HitAbout(string, string) {}
