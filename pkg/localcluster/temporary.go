package localcluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// temporaryPrefix begins the name of every temporary directory of ours.
	temporaryPrefix = "wva-"
	// lockName is the file in such a directory that its owner holds a lock on. The kernel lets go of the lock
	// when the owner ends, however that ends.
	lockName = "lock"
)

// TemporaryDirectory makes a directory below $TMPDIR that belongs to this process until remove is called. Those
// of processes that ended without removing theirs are removed first: keys of a cluster lie in them.
func TemporaryDirectory(kind string) (path string, remove func() error, err error) {
	if err := sweep(os.TempDir()); err != nil {
		return "", nil, err
	}
	if path, err = os.MkdirTemp("", temporaryPrefix+kind); err != nil {
		return "", nil, fmt.Errorf("make a temporary directory: %w", err)
	}
	lock, err := holdLock(path)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(path))
	}
	return path, func() error { return errors.Join(os.RemoveAll(path), lock.Close()) }, nil
}

// holdLock makes the lock of a directory. It gets its name when it is held, so that nobody finds it free in
// between.
func holdLock(directory string) (*os.File, error) {
	path := filepath.Join(directory, lockName)
	lock, err := os.OpenFile(path+".new", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the lock of a temporary directory: %w", err)
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("take the lock of the temporary directory %s: %w", directory, err), lock.Close())
	}
	return lock, nil
}

// sweep removes the temporary directories whose lock nobody holds. One without a lock is somebody else's, or is
// just being made.
func sweep(in string) error {
	locks, err := filepath.Glob(filepath.Join(in, temporaryPrefix+"*", lockName))
	if err != nil {
		return fmt.Errorf("look for temporary directories of earlier runs in %s: %w", in, err)
	}
	for _, path := range locks {
		if err := removeAbandoned(path); err != nil {
			return fmt.Errorf("remove a temporary directory that an earlier run left: %w", err)
		}
	}
	return nil
}

// removeAbandoned removes the directory of a lock if nobody holds it. What belongs to another user, or is a
// link, is left alone.
func removeAbandoned(path string) error {
	directory := filepath.Dir(path)
	info, err := os.Lstat(directory)
	if errors.Is(err, os.ErrNotExist) {
		return nil // another process was quicker
	} else if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || !ok || int(owner.Uid) != os.Geteuid() {
		return nil
	}
	lock, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	} else if err != nil {
		return fmt.Errorf("try the lock %s: %w", path, err)
	}
	return os.RemoveAll(directory)
}
