// The erasure code of klauspost/reedsolomon: encode, or decode of m lost data blocks, each time another pattern.
// Usage: erasure LEVEL encode|decode K M BYTES SECONDS [PAD]
// LEVEL is the newest instructions it may use: avx2, avx2-gfni or avx512-gfni. With PAD, the blocks are padded to a multiple
// of so many bytes; the user's bytes are still counted.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/klauspost/reedsolomon"
)

const (
	patterns = 4096
	batch    = 16
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	must(err)
	return n
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

// A cache of inverses would grow by one for each pattern, and later hold them all.
//
// For more than ten blocks the library has GFNI only where it may share its work among goroutines, and there from 256 bytes on.
// So it may, but the least share is such that one goroutine does it all.
func codec(level string, k, m, length int) reedsolomon.Encoder {
	options := []reedsolomon.Option{reedsolomon.WithInversionCache(false)}
	shared := []reedsolomon.Option{reedsolomon.WithMaxGoroutines(2), reedsolomon.WithMinSplitSize(length - 1)}
	switch level {
	case "avx512-gfni":
		options = append(options, shared...)
	case "avx2-gfni":
		options = append(append(options, shared...), reedsolomon.WithAVX512(false))
	case "avx2":
		options = append(options, reedsolomon.WithMaxGoroutines(1), reedsolomon.WithAVX512(false), reedsolomon.WithAVXGFNI(false))
	default:
		must(fmt.Errorf("no level %q: avx2, avx2-gfni or avx512-gfni", level))
	}
	made, err := reedsolomon.New(k, m, options...)
	must(err)
	return made
}

func main() {
	if len(os.Args) < 7 {
		must(fmt.Errorf("usage: erasure LEVEL encode|decode K M BYTES SECONDS [PAD]"))
	}
	encoding, k, m, length, pad := os.Args[2] == "encode", number(os.Args[3]), number(os.Args[4]), number(os.Args[5]), 1
	seconds, err := strconv.ParseFloat(os.Args[6], 64)
	must(err)
	if len(os.Args) > 7 {
		pad = number(os.Args[7])
	}
	room := (length + pad - 1) / pad * pad
	coder, random := codec(os.Args[1], k, m, room), rand.New(rand.NewSource(42))

	blocks := reedsolomon.AllocAligned(k+m, room)
	for _, block := range blocks[:k] {
		random.Read(block[:length])
	}
	must(coder.Encode(blocks))
	sent := make([][]byte, k+m)
	for i, block := range blocks {
		sent[i] = bytes.Clone(block)
	}
	lost := make([][]int, patterns)
	for i := range lost {
		lost[i] = random.Perm(k)[:m]
		slices.Sort(lost[i])
	}

	// An empty block is a lost one; it is written where it was.
	decode := func(lost []int) {
		for _, i := range lost {
			blocks[i] = blocks[i][:0]
		}
		must(coder.ReconstructData(blocks))
	}
	failed, calls := 0, 0
	for i := 0; i < 64 && !encoding; i++ {
		for _, j := range lost[i] {
			clear(blocks[j])
		}
		decode(lost[i])
		for j := range blocks {
			if !bytes.Equal(blocks[j], sent[j]) {
				failed++
			}
		}
	}
	begun, spent := cpuSeconds(), 0.0
	for spent < seconds {
		for range batch {
			if encoding {
				must(coder.Encode(blocks))
			} else {
				decode(lost[calls%patterns])
			}
			calls++
		}
		spent = cpuSeconds() - begun
	}
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"bits": float64(calls) * float64(k*length) * 8, "cpu_s": spent, "error_rate": float64(failed) / 64,
	}))
}
