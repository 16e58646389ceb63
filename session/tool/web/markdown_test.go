package web

import (
	"net/url"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var somewhere = &url.URL{Scheme: "https", Host: "e.example", Path: "/docs/page.html"}

// testdata/pages.txtar holds pairs of NAME.html and NAME.md.
func TestPagesBecomeMarkdown(t *testing.T) {
	data, err := os.ReadFile("testdata/pages.txtar")
	if err != nil {
		t.Fatal(err)
	}
	a := txtar.Parse(data)
	if len(a.Files) == 0 || len(a.Files)%2 != 0 {
		t.Fatalf("%d files", len(a.Files))
	}
	for i := 0; i < len(a.Files); i += 2 {
		in, out := a.Files[i], a.Files[i+1]
		name, _ := strings.CutSuffix(in.Name, ".html")
		if out.Name != name+".md" {
			t.Fatalf("%s is followed by %s", in.Name, out.Name)
		}
		title, content := markdown(string(in.Data), somewhere)
		if diff := cmp.Diff(string(out.Data), title+"\n---\n"+content+"\n"); diff != "" {
			t.Errorf("%s:\n%s\nwhole:\n%s", name, diff, content)
		}
	}
}

func TestMarkupThatIsBrokenIsReadAsFarAsItGoes(t *testing.T) {
	for in, want := range map[string]string{
		"":                                    "",
		"a < b && c > d <3":                   "a < b && c > d <3",
		"a<":                                  "a<",
		"a</":                                 "a",
		"a<b":                                 "a",
		"a<!-- b":                             "a",
		"a<!-->b-->c":                         "ab-->c",
		"a<!doctype x>b<?php y ?>c":           "abc",
		"a<![CDATA[<b>]]>c":                   "a<b>c",
		"a</3>b":                              "ab",
		"<p>a</b></p></div>b":                 "a\n\nb",
		"<b>a":                                "a",
		"<b><i>a</b></i>":                     "***a***",
		"<b> a </b>b":                         "**a** b",
		"a<b> </b>b":                          "a b",
		"<b><p>a<p>b</b>":                     "a\n\nb",
		"<a href=x>a":                         "a",
		"<a href=x></a>b":                     "b",
		"<a href=x>a<a href=y>b</a>":          "[a](https://e.example/docs/x)[b](https://e.example/docs/y)",
		"<a href='b(c)'>x</a>":                "[x](<https://e.example/docs/b(c)>)",
		"<a href=//o.example>x</a>":           "[x](https://o.example)",
		"<a href=https://u:p@o.example>x</a>": "[x](https://o.example)",
		"<a href='#x'>x</a>":                  "x",
		"<a href=javascript:x>x</a>":          "x",
		"<a href=data:x>x</a>":                "x",
		"<a href='http://[x'>x</a>":           "x",
		"<a href=https://o.example/>https://o.example/</a>": "https://o.example/",
		"<a href=mailto:a@b.example>x</a>":                  "[x](mailto:a@b.example)",
		"<A HREF = \"y\" href=z>x</A>":                      "[x](https://e.example/docs/y)",
		"<base href=https://o.example/d/><a href=y>x</a>":   "[x](https://o.example/d/y)",
		"<img alt='a  b' src=i.png>":                        "![a b](https://e.example/docs/i.png)",
		"<img alt=a src=data:x><img src=b>":                 "a",
		"<a href=y><img alt=a src=i></a>":                   "[a](https://e.example/docs/y)",
		"<code>a`b</code>":                                  "``a`b``",
		"<code>`</code>":                                    "`` ` ``",
		"<code>a <b>b</b></code>":                           "`a b`",
		"<pre>\n```\nx</pre>":                               "````\n```\nx\n````",
		"<pre></pre>a":                                      "a",
		"<pre>a":                                            "```\na\n```",
		"<pre><div>a</div><div>b</div></pre>":               "```\na\nb\n```",
		"<h2></h2>a":                                        "a",
		"<h2>a<p>b":                                         "## a\n\nb",
		"<h2>a<h3>b":                                        "## a\n\n### b",
		"<h2><a href=y>a</a></h2>":                          "## [a](https://e.example/docs/y)",
		"<li>a<li>b":                                        "- a\n- b",
		"<ul><li></ul>a":                                    "a",
		"<ol start=x><li>a</ol>":                            "1. a",
		"<ol start=7><li>a</ol>":                            "7. a",
		"<table><tr><th>a<tr><td>b":                         "| a |\n| --- |\n| b |",
		"<table><td>a<td>b</table>":                         "a b",
		"<table><tr><th>a<th>b</table>":                     "a | b",
		"<table><tr><td>a<td>b<tr><td>c|d<td>e</table>":     "| a | b |\n| --- | --- |\n| c\\|d | e |",
		"a&nbsp;b&amp;&lt;&#x41;&zz;":                       "a b&<A&zz;",
		"<script>a<p>b</script>c":                           "c",
		"<script>a</script":                                 "",
		"<style>a</style>b":                                 "b",
		"<title>a</title>b":                                 "b",
		"<svg><title>a</title><text>b</text></svg>c":        "c",
		"<template>a</template>b":                           "b",
		"<noscript>a</noscript>":                            "a",
		"<p hidden>a<p>b":                                   "b",
		"<div hidden>a<div>b</div>c</div>d":                 "d",
		"<div hidden><p>a</div>b":                           "b",
		"<div><span hidden>a</div>b":                        "b",
		"<div aria-hidden=true>a</div>b":                    "b",
		"<div style='color:red; display : none'>a</div>b":   "b",
		"<input hidden>b":                                   "b",
		"<body hidden>b":                                    "b",
		"<nav>a</nav>b":                                     "b",
		"<nav>a</nav>":                                      "a",
		"<div role=navigation>a</div>b<footer>c</footer>":   "b",
		"<plaintext>a<b>":                                   "a<b>",
	} {
		if _, got := markdown(in, somewhere); got != want {
			t.Errorf("%s\n%q, want\n%q", in, got, want)
		}
	}
}

func TestAPageIsItsMainElementWhereThatSaysEnough(t *testing.T) {
	long := strings.Repeat("word ", 100)
	if _, got := markdown("<div>side</div><main><p>"+long+"</main><div>side</div>", somewhere); got != strings.TrimSpace(long) {
		t.Errorf("%q", got)
	}
	if _, got := markdown("<p>"+long+"<main>short</main>", somewhere); !strings.HasPrefix(got, "word") {
		t.Errorf("%q", got)
	}
	if _, got := markdown("<main>"+long+"</main><main>second "+long+"</main>", somewhere); !strings.Contains(got, "second") {
		t.Errorf("%q", got)
	}
}

// A library that took minutes for some of these is why the converter is our own; a pass that is not linear shows itself here as a timeout.
func TestAPageThatWantsToBeCostlyIsNot(t *testing.T) {
	for name, piece := range map[string]string{
		"brackets": "[", "signs": "<", "tags cut off": "<a", "declarations": "<!", "comments": "<!--", "cdata": "<![CDATA[", "quotes": "<blockquote>a<br>",
		"lists": "<ul><li>a<br>", "items": "<li>a", "tables": "<table><tr><td>", "rows": "<tr><td>a<td>b", "bold": "<b>x", "mixed": "<b><i><a href=x>x",
		"titles": "<title>", "scripts": "<script>", "navigation": "<nav>", "mains": "<main>", "pre": "<pre>\n", "headings": "<h1>a", "attributes": "<a b='c' d=e ",
		"references": "&#x", "closings": "</p>", "spans": "<code>`</code>", "textarea": "<textarea></textare", "svg": "<svg>", "links": "<a href=x>x</a>",
	} {
		for _, before := range []string{"", "<table><tr>", strings.Repeat("<blockquote><ul><li>", 200), strings.Repeat("<div><b>", 5000), "<nav>" + strings.Repeat("<i>", 500)} {
			size := 64 << 10
			if before == "" {
				size = 256 << 10
			}
			_, content := markdown(before+strings.Repeat(piece, size/len(piece)), somewhere)
			if len(content) > maxWritten+size {
				t.Errorf("%s: %d bytes", name, len(content))
			}
		}
	}
}

func TestAShortBaseDoesNotMakeALongPage(t *testing.T) {
	page := "<base href='https://e.example/" + strings.Repeat("p", 1900) + "/'>" + strings.Repeat("<a href=a>x</a>", 100_000)
	if _, content := markdown(page, somewhere); len(content) > maxWritten+maxLink+100 {
		t.Errorf("%d bytes", len(content))
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{
		"<p>a<b>b</b>", "<ul><li>a<ul><li>b</ul></ul>", "<table><tr><th>a<td>b</table>", "<pre><code class=language-go>x</code></pre>", "<a href=x><h1>y</h1></a>",
		"<blockquote><ol><li><pre>x\ny</pre></ol>", "<nav><div></p></nav>x", "<main><title>x</title>", "<base href=//x><a href=y>z", "<table><a href=x><td>y</a></table>",
		"<h1><table><tr><td>a<td>b<tr><td>c<td>d</table>", "<li><dl><dt>a<dd>b", "<a href=x><b>y</a></b>", "<td><b>x</td></b>", "\xff<\xff>", "<code><pre>x</code></pre>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, page string) {
		text := decodeText(body{data: []byte(page), kind: "text/html", charset: "utf-8", markedUp: true})
		title, content := markdown(text, somewhere)
		if !utf8.ValidString(title) || !utf8.ValidString(content) || strings.Contains(title, "\n") {
			t.Errorf("%q %q", title, content)
		}
		if lower := strings.ToLower(page); strings.Contains(content, "\n\n\n") && !strings.Contains(lower, "<listing") && !strings.Contains(lower, "<pre") {
			t.Errorf("%q has empty lines in vain", content)
		}
		_ = textOf(text, 100)
	})
}
