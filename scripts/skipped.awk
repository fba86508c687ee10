# Passes CTest's output through. Before CTest's summary it puts which tests were skipped, in all or in part, and why: the lines
# "skipped: ..." that tests print, from CTest's log `log_file`, which has the output of tests that passed, too.
/^[0-9]+% tests passed/ { in_summary = 1 }
in_summary { summary = summary $0 "\n"; next }
{ print; fflush() }

END {
    while ((getline line < log_file) > 0) {
        if (match(line, /^[0-9]+\/[0-9]+ Test: /)) test = substr(line, RLENGTH + 1)
        if (line !~ /^skipped: /) continue
        reasons = reasons "  " test ": " substr(line, length("skipped: ") + 1) "\n"
        if (test != counted) ++tests
        counted = test
    }
    if (tests) printf "\n%d %s skipped, in all or in part:\n%s", tests, tests == 1 ? "test was" : "tests were", reasons
    else if (summary) print "\nNo test was skipped."
    printf "%s", summary
}
