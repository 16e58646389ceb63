package consent_test

import (
	"strings"
	"testing"
)

func TestWhatIsNeverDoneIsBlockedInEveryMode(t *testing.T) {
	p := newPlace(t)
	for _, command := range blocked {
		for _, mode := range []string{"ask", "edit", "read", "full"} {
			if v := p.run(mode, command); short(v) != "DangerousCommandBlocked" || v.Reason == "" || strings.Contains(v.Reason, "\n") {
				t.Errorf("%s\n\tin mode %s is %s: %s%s", command, mode, short(v), v.Title, v.Reason)
			}
		}
	}
}

var blocked = []string{
	`rm -rf /`, `rm -fr /`, `rm -r -f /`, `rm -R /`, `rm --recursive --force /`, `rm --recurs /`, `rm / -rf`, `rm -rf -- /`, `rm -rf /*`, `rm -rf //`, `rm -rf /.`, `rm -rf /../`, `rm -rf ~`, `rm -rf ~/`,
	`rm -rf ~/*`, `rm -rf "$HOME"`, `rm -rf $HOME/`, `rm -rf ${HOME}`, `rm -rf ~root`, `rm -rf /home/me`, `rm -rf /home/*`, `rm -rf /etc`, `rm -rf /usr /x`, `rm -rf /usr/*`, `rm -rf /usr/bin`,
	`rm -rf --no-preserve-root x`, `rm -rf / --no-preserve-root`, `rm -rf /{etc,usr}`, `rm -rf /u*`, `rm -rf /???`, `rm -rf /*/*`, `rm /etc/*`, `rm -rf ../../../../../../../../../..`,
	`"r"m -rf /`, `\rm -rf /`, `r''m -rf /`, `'rm' '-rf' '/'`, `rm${IFS}-rf${IFS}/`, `$'rm' -rf /`, `$'\x72m' -rf /`, `$'\162\155' -rf $'\x2f'`, `r$@m -rf /`, `/bin/rm -rf /`, `/usr/bin/rm -rf /`,
	`X=/; rm -rf $X`, `X=rm; $X -rf /`, `$(echo rm) -rf /`, "`echo rm` -rf /", `rm -rf $(echo /)`, `rm -rf ${X:-/}`, `$SUDO rm -rf /`, `for d in /tmp/x /; do rm -rf $d; done`,
	`sudo rm -rf /`, `sudo -u root rm -rf /`, `sudo -E -H -- rm -rf /`, `sudo FOO=1 rm -rf /`, `env rm -rf /`, `env -i A=b rm -rf /`, `env -u X rm -rf /`, `env -S 'rm -rf /'`, `nice -n 10 rm -rf /`,
	`nice -10 rm -rf /`, `nohup rm -rf / &`, `timeout 5 rm -rf /`, `timeout -s KILL 5 rm -rf /`, `timeout --signal=KILL 5 rm -rf /`, `command rm -rf /`, `exec rm -rf /`, `time rm -rf /`, `builtin rm -rf /`,
	`setsid rm -rf /`, `stdbuf -oL rm -rf /`, `busybox rm -rf /`, `doas rm -rf /`, `sudo env nice timeout 5 rm -rf /`, `echo / | xargs rm -rf`, `echo / | xargs -n1 rm -rf`, `xargs rm -rf / < x`,
	`sh -c 'rm -rf /'`, `bash -c "rm -rf /"`, `bash -lc 'rm -rf /'`, `bash -e -c 'rm -rf /'`, `sh -c "sh -c 'rm -rf /'"`, `sudo sh -c 'rm -rf /'`, `eval 'rm -rf /'`, `eval rm -rf /`, `eval "r"m "-rf" /`,
	`bash <<< 'rm -rf /'`, "sh <<EOF\nrm -rf /\nEOF", "bash -s <<'EOF'\ncd x\nrm -rf /\nEOF", `echo 'rm -rf /' | sh`, `printf 'rm -rf /' | sudo bash`, "cat <<EOF | sh\nrm -rf /\nEOF", `su -c 'rm -rf /'`,
	`su root -c 'rm -rf /'`, `trap 'rm -rf /' EXIT`, `alias x='rm -rf /'`, `watch 'rm -rf /'`, `find / -delete`, `find / -type f -delete`, `find / -exec rm -rf {} +`, `find . -exec rm -rf / \;`,
	`find . -exec sh -c 'rm -rf /' \;`, `find ~ -exec rm -r {} \;`, `ls && rm -rf /`, `ls || rm -rf /`, `ls; rm -rf /`, `ls | rm -rf /`, `(rm -rf /)`, `{ rm -rf /; }`, `f() { rm -rf /; }`, `while true; do rm -rf /; done`,
	`if rm -rf /; then ls; fi`, `case x in x) rm -rf /;; esac`, `echo $(rm -rf /)`, `cat <(rm -rf /)`, `echo "$(rm -rf /)"`, `ls > $(rm -rf /)`, "ls <<EOF\n$(rm -rf /)\nEOF", `X=$(rm -rf /) ls`,
	`X=$(rm -rf /)`, `export X=$(rm -rf /)`, `[[ $(rm -rf /) ]]`, `ls & rm -rf /`, `! rm -rf /`, "ls\nrm -rf /", `cd / && rm -rf *`, `cd /; rm -rf .`, `cd / && rm -rf ./*`, `cd ~ && rm -rf *`, `(cd /etc && rm -rf ../usr)`,
	`coproc rm -rf /`, `coproc rm -rf / | cat`, `coproc rm -rf / | cat | tee x && ls`, `coproc X { rm -rf /; } | cat`, `echo ${X:-$(rm -rf /)}`, `a[$(rm -rf /)]=1`, `echo $(( $(rm -rf /) ))`, `mv / /dev/null`, `mv ~ /tmp/x`, `rsync -a --delete empty/ /`,
	`mkfs /dev/sda1`, `mkfs.ext4 /dev/sda1`, `/sbin/mkfs.xfs -f x`, `sudo mkfs.ext4 /dev/nvme0n1`, `mke2fs x`, `wipefs -a /dev/sda`, `blkdiscard /dev/sda`, `dd if=/dev/zero of=/dev/sda`, `dd of=/dev/nvme0n1 bs=1M`,
	`cd /dev && dd of=sda`, `cp x /dev/sda`, `cat x > /dev/sda`, `> /dev/sda`, `:> /dev/sda`, `echo x >> /dev/nvme0n1`, `echo x | tee /dev/sda`, `sudo tee /dev/mapper/root < x`, `shred /dev/sda`,
	`echo b > /proc/sysrq-trigger`, `fdisk /dev/sda`, `parted /dev/sda mklabel gpt`, `sgdisk -Z /dev/sda`, `cryptsetup luksFormat x`, `diskutil eraseDisk JHFS+ x disk2`,
	`shutdown now`, `shutdown -h now`, `sudo shutdown -r +5`, `reboot`, `sudo reboot`, `halt`, `poweroff`, `/sbin/reboot`, `init 0`, `telinit 6`, `systemctl poweroff`, `sudo systemctl reboot -i`, `systemctl start poweroff.target`,
	`"re"boot`, `sleep 5 && reboot`, `:(){ :|:& };:`, `:() { : | : & }; :`, `bomb() { bomb | bomb & }; bomb`, `function f { f & f & }; f`, `sh -c ':(){ :|:& };:'`, `perl -e 'fork while fork'`,
	`chmod -R 777 /`, `chmod -R 000 /etc`, `sudo chown -R me /`, `chown -R me:me /usr`, `chmod --recursive 777 /*`, `kill -9 -1`, `kill -KILL -1`, `kill -s KILL -1`, `kill -- -1`, `killall5 -9`,
	`python3 -c "import os; os.system('rm -rf /')"`, `python -c "import shutil; shutil.rmtree('/')"`, `ruby -e 'system("rm -rf /")'`, `rm -rf / "unclosed`, "if (\nshutdown -h now",
	"echo a \\\r\nrm -rf /", "rm -rf /\r\nls", "ls #\\\nrm -rf /", "cat <<$'\\x45'\nE\nrm -rf /\n\\x45", `cd && rm -rf *`, `cd; rm -rf .`, `pushd / && rm -rf *`, `env -C / rm -rf usr`, `env --chdir=/ rm -rf *`, `sudo -D / rm -rf etc`,
	`find / -exec rm {} \;`, `find / -type f -exec shred {} +`, `. /dev/stdin <<< 'rm -rf /'`, `echo 'rm -rf /' | at now`, `batch <<< 'rm -rf /'`, `prlimit -n10 rm -rf /`, `gosu root rm -rf /`, `chronic rm -rf /`, `valgrind rm -rf /`,
	`perf stat rm -rf /`, `setpriv --reuid 1 rm -rf /`, `watch --interval 1 rm -rf /`, `tcsh -c 'rm -rf /'`, `rm -rf /!(x)`,
	`git -c core.pager='rm -rf /' log`, `git -c alias.x='!rm -rf /' x`, `tar --to-command='rm -rf /' -xf x`, `tar -I 'rm -rf /' -xf x`,
}

func TestWhatOnlyLooksLikeItIsNotBlocked(t *testing.T) {
	p := newPlace(t)
	for _, command := range []string{
		`rm -rf ./build`, `rm -rf /tmp/x`, `rm -rf ~/projects/x/build`, `rm -rf $X/`, `rm -rf "$BUILD"/*`, `echo rm -rf /`, `grep -r "rm -rf /" src`, `git commit -m "never run rm -rf /"`, `tar -cf x.tar "rm -rf /"`, `echo 'shutdown now'`,
		`rm -rf node_modules`, `rm -f a.txt`, `./reboot`, `./scripts/shutdown.sh`, `npm run reboot`, `kill -9 1234`, `kill -1 1234`, `kill -TERM -1234`, `chmod -R u+w src`, `chmod 644 /x`, `dd if=/dev/sda of=x.img`,
		`dd if=/dev/zero of=x bs=1`, `cat /dev/sda`, `ls /dev`, `systemctl status x`, `systemctl restart x`, `find / -name x -delete`, `find . -delete`, `fdisk -l /dev/sda`, `cp /dev/null x`, `echo x > /dev/stderr`, `init`,
		`walk() { for f in *; do walk $f & done; }`, `mv a b`, `command -v reboot`, `which mkfs`, `man mkfs`, `git init`, `terraform init`, `sh -c 'echo hi'`, `sudo -v`, `rm -rf .`, `rm -rf /home/me/projects/x`,
		`echo "mkfs.ext4 /dev/sda" > notes.md`, `find . -exec rm {} +`, `python3 -c "print('/')"`, `ls | xargs rm`, `cd && rm -rf x`, `env -C src rm -rf x`, `find / -name x -exec rm {} \;`, `find . -exec rm {} \;`, `HOME=/tmp/x; cd && rm -rf *`, `at now <<< 'npm test'`, "ls # rm -rf /\\\n", `systemctl list-units poweroff.target`, `rsync -a --delete a/ b/`,
	} {
		if v := p.run("full", command); v.Effect != "allow" {
			t.Errorf("%s\n\tis %s: %s", command, short(v), v.Reason)
		}
	}
}
