package consent_test

// readers are judged to only read, and are run for that matter.
var readers = []string{
	`ls`, `ls -la`, `ls -la src`, `ls *`, `ls src/*.go`, `cat README.md`, `cat a.txt b.txt`, `cat *.txt`, `head -n 5 a.txt`, `tail -n 2 a.txt`, `wc -l a.txt src/main.go`,
	`sort a.txt`, `sort -r a.txt | uniq -c`, `uniq a.txt`, `cut -d, -f1 a.txt`, `tr a-z A-Z < a.txt`, `grep -n main src/main.go`, `grep -rn main src`, `grep -r "func /main" src/`,
	`grep -e /x -e y a.txt`, `sed -n '1,2p' a.txt`, `sed -n '/func/,/^}/p' src/main.go`, `sed -n -e 1p -e '2{p;q}' a.txt`, `sed -n 's/a/b/gp' a.txt`, `sed -ne 1p a.txt`, `sed -n 1p *.txt`, `sed s/a/b/ a.txt`, `sed -E 's/(a)/[\1/g' a.txt`, `sed 5q a.txt`, `ls | sed 's/^/  /'`, `sed -n '/[a-z]/p' a.txt`, `sed 's#[/]#-#' a.txt`,
	`find . -name '*.go'`, `find src -type f -newer a.txt`, `find . -maxdepth 1 -print0`, `diff a.txt b.txt`, `cmp a.txt b.txt`, `stat a.txt`, `file a.txt`, `du -sh src`, `pwd`,
	`echo hello`, `echo "a > b"`, `echo '$(rm x)'`, `printf '%s\n' a b`, `true`, `false || true`, `test -f a.txt`, `[ -d src ] && echo yes`, `[[ -f a.txt ]]`, `date +%F`, `uname -a`,
	`whoami`, `id -u`, `which ls`, `command -v ls`, `type ls`, `basename src/main.go`, `dirname src/main.go`, `realpath a.txt`, `seq 3`, `cd src && ls`, `cd src; ls`, `(cd src && cat main.go)`,
	`cd src && cat ../a.txt`, `ls 2>/dev/null`, `ls 2>&1 | head`, `cat a.txt > /dev/null`, `cat < a.txt`, `cat <<< hello`, "cat <<'EOF'\nx $y\nEOF", `if [ -f a.txt ]; then cat a.txt; else ls; fi`,
	`for f in a b; do echo done; done`, `{ ls; pwd; }`, `! grep -q zzz a.txt`, `time ls`, `timeout 5 ls`, `nice -n 5 ls`, `LC_ALL=C sort a.txt`, `set -euo pipefail; ls`, "ls # a comment",
	"ls\npwd\n", `git status`, `git status --short`, `git log --oneline -5`, `git --no-pager diff`, `git diff HEAD -- src`, `git show HEAD --stat`, `git branch`, `git branch -a -vv`,
	`git branch --list 'f*'`, `git rev-parse --abbrev-ref HEAD`, `git ls-files src`, `git blame README.md`, `git remote -v`, `git tag -l`, `git stash list`, `git -C src log`, `git grep main`,
	`git config --get user.name`, `GIT_PAGER=cat git log`, `"cat" a.txt`, `\ls`, `/bin/cat a.txt`, `jq .a data.json`, `jq '.a | length' data.json`, `xxd a.txt`, `base64 a.txt`, `sha256sum a.txt`,
	`nl a.txt`, `od -c a.txt`, `cat -- a.txt`, `cat inner/main.go`, `sort flags/*`, `cd flags && sort ./*`, `cat ./src/../a.txt`, `cat {a,b}.txt`, `ls -la | grep txt | wc -l`, `git diff main..HEAD`, `cat .env.example`, `head -c5 a.txt`,
	`cat $'a.txt'`, `cat a.txt # rm -rf /`, `case x in x) ls;; esac`, `while false; do ls; done`, `ls guarded`, `ls guarded/*`, `sleep 0`, `rg main src`, `rg -n --hidden main src`, `tree src`, `fd main`,
	`git log --grep=/etc --author=../x --format=%h/%s --since=2/3`, `git log --oneline .git`,
	`echo $?`, `ls; echo "exit: $?"`, `[ $? -eq 0 ]`, `[[ $? == 0 ]]`, `printf '100%%n %d\n' $?`, `date -Iseconds`, `date -u +%s`, `python3 -V`, `git reflog -n 5`, `git reflog -3`, `git config user.name`,
	`jq .env data.json`, `jq '.a, .include' data.json`, `grep -rn main s*`, `grep -R main src`, `diff -r src src`, `diff -q src src/deep`, `git diff --no-index src src`, `find -L src -name x`, `du -L src`,
	`find . -name '*.go' -exec grep -n main {} +`, `find src -type f -exec wc -l {} \;`, `find . -name '*.go' -o -name '*.md' -exec head -n 2 {} \;`, `find . \( -name '*.go' -o -name '*.md' \) -exec cat {} +`,
	`find src -exec ls -la {} +`, `find . -name '*.go' -exec sed -n 1p {} \; -exec grep -c x {} \;`, `find . -path ./guarded -prune -o -name '*.go' -exec cat {} +`, `find links -type f -exec cat {} +`, `find . ! -name x -name '*.txt' -exec sort {} +`,
	`grep -A 3 "/main" src/main.go`, `grep -rn --include='*.go' main .`, `grep -rn main --include=*.go src`, `grep -rnw -e main --include '*.go' src`, `grep -n -- -x a.txt; true`, `rg -g '*.go' main`, `rg -tgo main`, `rg --files`, `rg -g '*.{ts,tsx}' main`, `rg -C 3 /main src`, `fd -e go . src`,
	`sort -t, -k2,2n a.txt`, `sort -t / -k 1 a.txt`, `tail -n +2 a.txt`, `tail -n -1 a.txt`, `tail -5 a.txt`, `xxd -l 16 a.txt`, `xxd -c8 -g 1 a.txt`, `uniq -c -f 1 a.txt`, `base64 -w 0 a.txt`, `diff -U 3 a.txt b.txt`, `diff -u --color=never a.txt b.txt`,
	`jq -r --arg x y '.a' data.json`, `jq -n '1'`, `tree -L 2 -I node_modules src`, `file -b --mime-type a.txt`, `wc -lw a.txt`, `md5sum a.txt b.txt`, `strings -n 8 a.txt`, `shuf -n 1 a.txt`, `sleep 0.1`, `seq 1 2 9`, `seq -s , 3`,
	`[ 1 -eq 1 ]`, `[ a \< b ]; true`, `diff src/main.go src`, `[[ 2 -gt 1 && -f a.txt ]]`, `test -t 1 || true`, `[[ -d src && ! -d new ]]`, `[[ a == b || -n c ]] && ls`, `jq .a data.json --arg x /y`, `for f in a b; do ls; done`, `for i in 1 2; do ls; done`, `cat $'a\x2etxt'`, `git diff HEAD -- a.txt`, `git log --oneline -- src`, `git config --get core.bare`, `git grep -n -e main -- src`, `cat a.txt | sed -n '$p'`,
	"cat <<\\E\n$x\nE", "cat <<\"E F\"\n$x\nE F", "ls # a\\\n", "ls \\\n  # not \\ this\n",
}
