package payload

import (
	"net/url"
	"testing"
)

func TestURLsAreEncoded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"url":"http://h/a b?q=two words&limit=5"}`:                                "http://h/a%20b?q=two%20words&limit=5",
		`{"url":"http://h/ü/€?q=ü'\"<>"}`:                                           "http://h/%C3%BC/%E2%82%AC?q=%C3%BC%27%22%3C%3E",
		`{"url":"http://h/%20?q=%C3%BC+x"}`:                                         "http://h/%20?q=%C3%BC+x",
		`{"url":"http://h?q=a b"}`:                                                  "http://h?q=a%20b",
		`{"url":"http://u:p@h:80/{id}|x"}`:                                          "http://u:p@h:80/%7Bid%7D|x",
		`{"url":"http://[::1]:80/a?b=[c]"}`:                                         "http://[::1]:80/a?b=[c]",
		`{"url":"http://h/","query":{"q":"a&b=c#d e+ü","n":9007199254740993}}`:      "http://h/?n=9007199254740993&q=a%26b%3Dc%23d+e%2B%C3%BC",
		`{"url":"http://h/?a=1","query":{"t":["x","y",null,true],"z":null,"e":""}}`: "http://h/?a=1&e=&t=x&t=y&t=true",
		`{"url":"http://h","query":{"a b":1.50}}`:                                   "http://h?a+b=1.50",
		`{"url":"http://h/a?","query":{"b":1}}`:                                     "http://h/a?b=1",
		`{"url":"http://h/a"}`:                                                      "http://h/a",
	} {
		r, err := HTTP([]byte(text))
		if err != nil || r.URL != want {
			t.Errorf("%s: %+v %v, want %s", text, r, err, want)
			continue
		}
		if _, err := url.ParseRequestURI(r.URL); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		`{"url":"http://h/#a"}`, `{"url":"http://h/?q=a#b"}`, `{"url":"http://h/a\nb"}`, `{"url":"http://h/\t"}`, `{"url":"http://h/%zz"}`, `{"url":"http://a b/"}`, `{"url":"ftp://h/"}`, `{"url":"http://h/","query":{"a":{}}}`,
		`{"url":"http://h/","query":{"a":[[1]]}}`, `{"url":"http://h/","query":"a=b"}`,
	} {
		if r, err := HTTP([]byte(text)); err == nil {
			t.Errorf("%s: %s", text, r.URL)
		}
	}
}

func TestABodyOfNullIsNone(t *testing.T) {
	t.Parallel()
	if r, err := HTTP([]byte(`{"url":"http://h/","body":null}`)); err != nil || r.Body != nil || r.Method != "GET" {
		t.Errorf("%+v %v", r, err)
	}
	if r, err := HTTP([]byte(`{"url":"http://h/","body":""}`)); err != nil || string(r.Body) != `""` || r.Method != "POST" {
		t.Errorf("%+v %v", r, err)
	}
}
