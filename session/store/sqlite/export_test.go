package sqlite

import (
	"context"
	"fmt"
)

// LimitPages makes the file full at n pages.
func (s *Store) LimitPages(ctx context.Context, n int) {
	if err := s.alone(ctx, func(ctx context.Context, w *writer) error {
		_, err := w.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", n))
		return err
	}); err != nil {
		panic(err)
	}
}
