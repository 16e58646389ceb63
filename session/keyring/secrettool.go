package keyring

import (
	"context"
	"strings"
)

// secretTool is the Secret Service, through libsecret's secret-tool.
type secretTool struct{ program }

// Get implements Ring. secret-tool ends with 1 and says nothing where there is no such secret, and also where it is locked away and nobody can be
// asked to unlock it.
func (t secretTool) Get(ctx context.Context, account string) (string, error) {
	a, err := t.run(ctx, "", "lookup", "service", service, "account", account)
	switch {
	case err != nil:
		return "", err
	case a.code == 0:
		return strings.TrimSuffix(a.out, "\n"), nil
	case strings.TrimSpace(a.err) == "":
		if t.locked(ctx, account) {
			return "", ErrLocked
		}
		return "", ErrNotFound
	}
	return "", a.refused("read from the keyring", a.out)
}

// locked reports whether there is such a secret, and it cannot be read: a search shows it without one.
func (t secretTool) locked(ctx context.Context, account string) bool {
	a, err := t.run(ctx, "", "search", "service", service, "account", account)
	return err == nil && strings.HasPrefix(a.out, "[") && !strings.Contains(a.out, "\nsecret = ")
}

// Set implements Ring.
func (t secretTool) Set(ctx context.Context, account, secret string) error {
	a, err := t.run(ctx, secret, "store", "--label=rind: "+account, "service", service, "account", account)
	if err == nil && a.code != 0 {
		err = a.refused("write to the keyring", secret)
	}
	return err
}

// Delete implements Ring. clear does not say whether there was anything.
func (t secretTool) Delete(ctx context.Context, account string) (bool, error) {
	if _, err := t.Get(ctx, account); err != nil {
		return false, ignoring(err)
	}
	a, err := t.run(ctx, "", "clear", "service", service, "account", account)
	if err == nil && a.code != 0 {
		err = a.refused("delete from the keyring", "")
	}
	return err == nil, err
}
