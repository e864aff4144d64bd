package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Broker has a server's metrics about the message broker between it and its workers.
type Broker struct {
	Up          bool
	Lines       map[string]BrokerLine
	Redelivered int64
	Dead        int64
	Rebuilt     int64
}

// BrokerLine has the metrics of one of the broker's lines.
type BrokerLine struct {
	Delivered int64 // messages that this server has received
	Waiting   int64
	Bytes     int64 // -1: unknown
	Oldest    time.Duration
}

// brokerFigures collects them.
type brokerFigures struct{ of func() Broker }

var (
	brokerUp          = described("broker_up", "Whether the broker answered this server a few seconds ago.")
	brokerMessages    = described("broker_letters_total", "Letters from the broker's lines that this server was given.", "line")
	brokerWaiting     = described("broker_waiting_letters", "Letters in the broker's lines.", "line")
	brokerBytes       = described("broker_bytes", "Bytes of messages in the broker's lines.", "line")
	brokerOldest      = described("broker_oldest_seconds", "Age of the oldest message in the broker's lines.", "line")
	brokerRedelivered = described("broker_redelivered_total", "Letters that this server was given and another, or it, had been given before.")
	brokerDead        = described("broker_dead_total", "Letters that this server could not read and put among the dead letters.")
	brokerRebuilt     = described("broker_rebuilt_total", "Times that this server has made a new reply queue because the one before was gone.")
)

func (m brokerFigures) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{brokerUp, brokerMessages, brokerWaiting, brokerBytes, brokerOldest, brokerRedelivered, brokerDead,
		brokerRebuilt} {
		to <- d
	}
}

func (m brokerFigures) Collect(to chan<- prometheus.Metric) {
	f := m.of()
	up := 0.0
	if f.Up {
		up = 1
	}
	to <- prometheus.MustNewConstMetric(brokerUp, prometheus.GaugeValue, up)
	for name, l := range f.Lines {
		to <- prometheus.MustNewConstMetric(brokerMessages, prometheus.CounterValue, float64(l.Delivered), name)
		to <- prometheus.MustNewConstMetric(brokerWaiting, prometheus.GaugeValue, float64(l.Waiting), name)
		if l.Bytes >= 0 {
			to <- prometheus.MustNewConstMetric(brokerBytes, prometheus.GaugeValue, float64(l.Bytes), name)
		}
		to <- prometheus.MustNewConstMetric(brokerOldest, prometheus.GaugeValue, l.Oldest.Seconds(), name)
	}
	to <- prometheus.MustNewConstMetric(brokerRedelivered, prometheus.CounterValue, float64(f.Redelivered))
	to <- prometheus.MustNewConstMetric(brokerDead, prometheus.CounterValue, float64(f.Dead))
	to <- prometheus.MustNewConstMetric(brokerRebuilt, prometheus.CounterValue, float64(f.Rebuilt))
}
