package consent

// The flags of programs whose others do more than reading: write, run programs, read what is named in a file, go on for ever. They are those
// of GNU, and of BSD and macOS where these know others.

var (
	sumFlags     = &options{bare: "btz", take: "al", long: "algorithm= length= binary text tag untagged zero base64 raw debug help version"}
	wcFlags      = &options{bare: "clmwL", long: "bytes chars lines words max-line-length total= help version"}
	base64Flags  = &options{bare: "dDih", take: "wb", long: "decode ignore-garbage wrap= break= input= help version"}
	uniqFlags    = &options{bare: "cdDuiz" + digits, take: "fsw", stops: true, long: "count repeated all-repeated? skip-fields= group? ignore-case skip-chars= unique zero-terminated check-chars= help version"}
	tailFlags    = &options{bare: "qvzr" + digits, take: "ncb", long: "bytes= lines= quiet silent verbose zero-terminated help version"}
	shufFlags    = &options{bare: "ez", take: "in", long: "echo input-range= head-count= zero-terminated random-source= help version", paths: []string{"--random-source"}}
	stringsFlags = &options{bare: "adfowvVh" + digits, take: "nteUs", long: "all data print-file-name bytes= radix= encoding= unicode= include-all-whitespace output-separator= help version"}

	sedFlags = &options{bare: "nErsuz", take: "e", texts: []string{"-e", "--expression"}, long: "quiet silent regexp-extended separate unbuffered posix expression="}

	sortFlags = &options{
		bare: "bdfgiMhnRrVcCmsuz", take: "kSt", paths: []string{"--random-source"},
		long: "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort random-source= reverse sort= version-sort batch-size= check? debug key= merge buffer-size= stable field-separator= parallel= unique zero-terminated help version",
	}
	diffFlags = &options{
		bare: "abBcdeEfhHiNnpPqrsTtuvwyZ" + digits, take: "CDFILSUWxX", paths: []string{"-X", "-S", "--exclude-from", "--starting-file", "--from-file", "--to-file"},
		long: "normal brief report-identical-files context? unified? ed rcs side-by-side width= left-column suppress-common-lines show-c-function show-function-line= label= expand-tabs initial-tab tabsize= suppress-blank-empty recursive no-dereference new-file unidirectional-new-file ignore-file-name-case no-ignore-file-name-case exclude= exclude-from= starting-file= from-file= to-file= ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines= text strip-trailing-cr ifdef= old-group-format= new-group-format= unchanged-group-format= changed-group-format= line-format= old-line-format= new-line-format= unchanged-line-format= minimal horizon-lines= speed-large-files color? palette= help version",
	}
	jqFlags = &options{
		bare: "nrjaSCMcsRehV", whole: true, paths: []string{"--slurpfile", "--rawfile"},
		long: "null-input raw-output raw-output0 join-output ascii-output sort-keys color-output monochrome-output compact-output slurp raw-input exit-status stream stream-errors seq tab unbuffered indent= arg== argjson== slurpfile== rawfile== args jsonargs help version",
	}
	grepFlags = &options{
		bare: "EFGPiyvwxczsLlqnHhbuUZorRaITVSOp" + digits, take: "efABCmDd", texts: []string{"-e", "-f", "--regexp", "--file"}, paths: []string{"-f", "--file", "--exclude-from"},
		long: "regexp= file= ignore-case no-ignore-case word-regexp line-regexp null-data no-messages invert-match version help max-count= byte-offset line-number line-buffered with-filename no-filename label= only-matching quiet silent binary-files= text directories= devices= recursive dereference-recursive include= exclude= exclude-from= exclude-dir= files-without-match files-with-matches count initial-tab null before-context= after-context= context: group-separator= no-group-separator color? colour? binary extended-regexp fixed-strings basic-regexp perl-regexp",
	}
	rgFlags = &options{
		bare: ".0abcFHhIilLNnopPqsSuUvVwx", take: "ABCdeEfgjmMrtT", whole: true, texts: []string{"-e", "-f", "--regexp", "--file", "--files"}, paths: []string{"-f", "--file", "--ignore-file"},
		long: "auto-hybrid-regex binary block-buffered byte-offset case-sensitive column no-column count count-matches crlf files files-with-matches files-without-match fixed-strings follow no-follow glob-case-insensitive heading no-heading help hidden no-hidden ignore-case include-zero invert-match json line-buffered line-number no-line-number line-regexp max-columns-preview mmap no-mmap multiline multiline-dotall no-config no-filename no-ignore no-ignore-dot no-ignore-exclude no-ignore-files no-ignore-global no-ignore-messages no-ignore-parent no-ignore-vcs no-messages no-require-git no-unicode null null-data one-file-system only-matching passthru passthrough pcre2 pcre2-version pretty quiet smart-case sort-files stats stop-on-nonmatch text type-list trim no-trim unrestricted version vimgrep with-filename word-regexp " +
			"after-context= before-context= context= color= colors= context-separator= dfa-size-limit= encoding= engine= field-context-separator= field-match-separator= file= glob= iglob= ignore-file= max-columns= max-count= max-depth= maxdepth= max-filesize= path-separator= regex-size-limit= regexp= replace= sort= sortr= threads= type= type-add= type-not= type-clear=",
	}
	fdFlags = &options{
		bare: "HIusigFLp01qhV", take: "dEteScjoC", whole: true, paths: []string{"-C", "--base-directory", "--search-path", "--ignore-file"},
		long: "hidden no-hidden no-ignore no-ignore-vcs no-ignore-parent no-global-ignore-file no-require-git unrestricted case-sensitive ignore-case glob regex fixed-strings and= absolute-path relative-path follow full-path max-depth= maxdepth= min-depth= exact-depth= exclude= prune type= extension= size= changed-within= changed-before= newer= older= owner= format= max-results= quiet show-errors color= threads= strip-cwd-prefix? one-file-system print0 base-directory= path-separator= search-path= ignore-file= help version",
	}
	treeFlags = &options{
		bare: "adfilpusghDFqNrtUcvQACSJXxn", take: "LPIHT", whole: true, paths: []string{"--gitfile", "--infofile"},
		long: "noreport dirsfirst filesfirst prune gitignore matchdirs ignore-case du si inodes device nolinks metafirst info charset= filelimit= timefmt= sort= gitfile= infofile= help version",
	}
	fileFlags = &options{
		bare: "bcdDEhiIklLNnrsv0", take: "eFmP", paths: []string{"-m", "--magic-file"},
		long: "brief checking-printout no-dereference mime mime-type mime-encoding apple extension keep-going list dereference no-pad no-buffer raw special-files debug print0 exclude= exclude-quiet= separator= magic-file= parameter= version help",
	}
)
