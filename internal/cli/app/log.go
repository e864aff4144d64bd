package app

import (
	"log/slog"
	"strings"
	"sync"
)

// Logger writes to standard error, or to the function given to RedirectLog.
func (a *App) Logger() *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.Config.Text("log_level"))); err != nil {
		level = slog.LevelWarn // the setting was checked
	}
	return slog.New(slog.NewTextHandler(&a.logTo, &slog.HandlerOptions{Level: level}))
}

// logWriter writes log lines to a writer, or to a function that keeps them out of a live view.
type logWriter struct {
	mu  sync.Mutex
	say func(line string)
	app *App
}

func (l *logWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	say := l.say
	l.mu.Unlock()
	if say == nil {
		return l.app.Err.Write(b)
	}
	say(strings.TrimRight(string(b), "\n"))
	return len(b), nil
}

// RedirectLog sends log lines to say; nil sends them to standard error again.
func (a *App) RedirectLog(say func(line string)) {
	a.logTo.mu.Lock()
	defer a.logTo.mu.Unlock()
	a.logTo.say = say
}
