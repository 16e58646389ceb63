package web
import ("testing";"time";"strings";"fmt";"net/url";"os")
func TestAdv(t *testing.T){
 n:=2<<20
 rep:=func(s string) string { return strings.Repeat(s, n/len(s)) }
 base,_:=url.Parse("https://e.example/a/b")
 cases:=map[string]string{
 "text": rep("hello world "), "p": rep("<p>hi there"), "li": "<ul>"+rep("<li>a"),
 "bq400": strings.Repeat("<blockquote>",400)+rep("a<br>"), "ul200": strings.Repeat("<ul><li>",200)+rep("a<br>"),
 "bqmany": rep("<blockquote>a"), "ulmany": rep("<ul><li>a"), "olmany": rep("<ol><li>"),
 "b": rep("<b>x"), "bclosed": rep("<b>x</b>"), "bnest": strings.Repeat("<b>",100000)+rep("x")+strings.Repeat("</b>",100000),
 "alts": rep("<b><i><s><code>x</code></s></i></b>"), "bigalts": rep("<b><i><a href=x>x"),
 "i-a": rep("<a href=x>x</a>"), "a open": rep("<a href=x>x"),
 "longbase": "<base href='https://e.example/"+strings.Repeat("p",2000)+"/'>"+rep("<a href=x>x</a>"),
 "div300": strings.Repeat("<div>",300)+rep("<p>a</p>"), "table": rep("<table><tr><td>"), "table2": "<table>"+rep("<tr><td>a<td>b"),
 "tds": "<table><tr>"+rep("<th>a"),
 "tablefl": "<table>"+rep("<b>x</b>"), "code": rep("<code>`</code>"), "pre": "<pre>"+rep("````` \n"), "preopen": rep("<pre>\n"),"prediv": "<pre>"+rep("<div>x"),
 "bqpre": strings.Repeat("<blockquote>",400)+"<pre>"+rep("a\n"),
 "brackets": rep("["), "lt": rep("<"), "ltslash": rep("</"), "ltb": rep("<!"), "ltq": rep("<a"), "nl": rep("\n"),
 "attrs": "<a "+rep("a b c ")+">", "attrs2": "<a "+func() string { var b strings.Builder; for i:=0;b.Len()<n;i++ { fmt.Fprintf(&b,"a%d ",i)}; return b.String()}()+">",
 "svg": rep("<svg>"), "svg2": rep("<svg></svg>"), "navs": rep("<nav>"), "navdiv": "<nav>"+strings.Repeat("<div>",300)+rep("</p>"), "ents": rep("&amp;"), "empty": rep("<p></p>"),
 "hr": rep("<hr>"), "br": rep("<br>"), "h1": rep("<h1>a</h1>"),"h1o": rep("<h1>a"), "img": rep("<img alt=a src=a>"), "comments": rep("<!--a-->"), "copen": rep("<!--"),
 "title": rep("<title>"), "titles": rep("<title>a</title>"), "script": rep("<script>"), "names": func() string { var b strings.Builder; for i:=0;b.Len()<n;i++ { fmt.Fprintf(&b,"<z%d>",i)}; return b.String()}(),
 "nbsp": rep("&nbsp;"), "mains": rep("<main>"), "mains2": rep("<main>a</main>"), "raw": "<textarea>"+rep("</textare"), "cdata": rep("<![CDATA["), "dd": rep("<dd>a"),
 }
 for k,v:=range cases {
  b:=time.Now(); s:=decodeText(body{data:[]byte(v), kind:"text/html", markedUp:true}); _,c:=markdown(s,base); d:=time.Since(b)
  if d > 300*time.Millisecond || os.Getenv("ALL")!="" { fmt.Println(k,d.Round(time.Millisecond),len(c)) }
 }
}
