package rabbitmq

import "time"

func init() { settleWithin = 10 * time.Second }
