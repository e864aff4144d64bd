//go:build !failpoints

package failpoint

func Hit(string) {}

// HitAbout is Hit for one document, by its name.
func HitAbout(string, string) {}
