package replay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// page is a file that is written whole or not at all.
type page struct {
	path string
	mode os.FileMode
}

// checkPage tries whether the file can be written, and leaves nothing behind.
func checkPage(path string) (*page, error) {
	p := &page{path: path, mode: 0o644}
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file: expected the name of a file that is new or may be replaced", path)
	case err == nil:
		p.mode = info.Mode().Perm()
		// The file that a link leads to is replaced, not the link.
		if p.path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, err
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	file, err := p.temporary()
	if err != nil {
		// The name that the user does not know is left out.
		if of := new(os.PathError); errors.As(err, &of) {
			err = of.Err
		}
		return nil, fmt.Errorf("%s cannot be written (%w): expected a file in a directory that is there and can be written to", path, err)
	}
	return p, errors.Join(file.Close(), os.Remove(file.Name()))
}

// temporary is a new file beside it.
func (p *page) temporary() (*os.File, error) {
	return os.CreateTemp(filepath.Dir(p.path), "."+filepath.Base(p.path)+".*")
}

// write fills a temporary file and gives it its name when it is whole.
func (p *page) write(fill func(io.Writer) error) (err error) {
	file, err := p.temporary()
	if err != nil {
		return fmt.Errorf("writing %s: %w", p.path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
			err = fmt.Errorf("writing %s: %w", p.path, err)
		}
	}()
	if err := errors.Join(fill(file), file.Chmod(p.mode), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), p.path)
}
