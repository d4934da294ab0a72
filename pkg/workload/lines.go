package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// lines reads a text line by line and words the errors about it: each names the
// file and the line.
type lines struct {
	name string
	// want is what a line should be, for errors.
	want    string
	longest int
	scanner *bufio.Scanner
	// at is the number of the line that was read last.
	at int
}

// byteOrderMark is what spreadsheet programs put before a file in UTF-8.
const byteOrderMark = "\ufeff"

// newLines reads lines of at most longest bytes.
func newLines(r io.Reader, name, want string, longest int) *lines {
	l := &lines{name: name, want: want, longest: longest, scanner: bufio.NewScanner(r)}
	l.scanner.Buffer(make([]byte, 0, min(longest, maxLine)), longest)
	return l
}

// header reads the first line, which has to be the wanted one.
func (l *lines) header() error {
	header, err := l.read()
	if errors.Is(err, io.EOF) {
		return l.fail("the file is empty; expected the header %s", l.want)
	}
	if err != nil {
		return err
	}
	if header != l.want {
		return l.fail("the header is %q; expected %s", short(header), l.want)
	}
	return nil
}

// row returns the next line, which must not be empty, or io.EOF. Empty lines at
// the end of the file are ignored.
func (l *lines) row() (string, error) {
	line, err := l.read()
	if err != nil {
		return "", err
	}
	if line == "" {
		return "", l.onlyEmptyLines()
	}
	return line, nil
}

// columns returns the next row of a file whose header has that many columns.
func (l *lines) columns(n int) ([]string, error) {
	line, err := l.row()
	if err != nil {
		return nil, err
	}
	columns := strings.Split(line, ",")
	if len(columns) != n {
		return nil, l.fail("%d columns in %q; expected %d: %s", len(columns), short(line), n, l.want)
	}
	return columns, nil
}

// read returns the next line without its end.
func (l *lines) read() (string, error) {
	l.at++
	if l.scanner.Scan() {
		line := strings.TrimSuffix(l.scanner.Text(), "\r")
		if l.at == 1 {
			line = strings.TrimPrefix(line, byteOrderMark)
		}
		return line, nil
	}
	switch err := l.scanner.Err(); {
	case err == nil:
		return "", io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return "", l.fail("the line is longer than %d bytes; expected %s", l.longest, l.want)
	default:
		return "", fmt.Errorf("%s:%d: reading the trace: %w", l.name, l.at, err)
	}
}

// onlyEmptyLines is what follows an empty line: the end, or else an error that
// names the empty line.
func (l *lines) onlyEmptyLines() error {
	empty := l.at
	for {
		line, err := l.read()
		if err != nil {
			return err
		}
		if line != "" {
			l.at = empty
			return l.fail("the line is empty; expected %s", l.want)
		}
	}
}

// tokens reads a count of tokens.
func (l *lines) tokens(column, text string) (int, error) {
	// 31 bits are far above any context and keep sums of tokens exact.
	n, err := strconv.ParseInt(text, 10, 32)
	if err == nil && n == 0 {
		return 0, l.fail("%s is %q; expected a whole number of at least 1: leave out requests that have none", column, short(text))
	}
	if err != nil || n < 1 {
		return 0, l.fail("%s is %q; expected a whole number of at least 1", column, short(text))
	}
	return int(n), nil
}

// whole reads a whole number of at least 0.
func (l *lines) whole(column, text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, l.fail("%s is %q; expected a whole number of at least 0", column, short(text))
	}
	return int(n), nil
}

// nonNegative reads a finite number of at least 0.
func (l *lines) nonNegative(column, text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0) || math.IsInf(x, 0) {
		return 0, l.fail("%s is %q; expected a number of at least 0", column, short(text))
	}
	return x, nil
}

// positive reads a finite number above 0.
func (l *lines) positive(column, text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x > 0) || math.IsInf(x, 0) {
		return 0, l.fail("%s is %q; expected a number above 0", column, short(text))
	}
	return x, nil
}

func (l *lines) fail(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", l.name, l.at, fmt.Sprintf(format, args...))
}

// short keeps what an error quotes readable when a file is no trace at all.
func short(text string) string {
	const most = 60
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
