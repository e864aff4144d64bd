package pid1

// Starved is the total of the line "full" of a cpu.pressure file of cgroup v2, in nanoseconds; 0 without such a line:
//
//	some avg10=0.00 avg60=0.00 avg300=0.00 total=1935
//	full avg10=0.00 avg60=0.00 avg300=0.00 total=1935
func Starved(text []byte) int64 {
	const line, key = "full ", "total="
	for len(text) > 0 {
		end := 0
		for end < len(text) && text[end] != '\n' {
			end++
		}
		if end > len(line) && string(text[:len(line)]) == line {
			for at := len(line); at+len(key) < end; at++ {
				if string(text[at:at+len(key)]) == key {
					return 1000 * number(text[at+len(key):end])
				}
			}
		}
		text = text[min(end+1, len(text)):]
	}
	return 0
}

// number parses decimal digits up to the first other byte.
func number(digits []byte) (n int64) {
	for _, c := range digits {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int64(c-'0')
	}
	return n
}
