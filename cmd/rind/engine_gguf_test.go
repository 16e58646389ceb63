//go:build linux && amd64

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// tinyModel is a model file in the format GGUF 3: a transformer of the kind "llama" with two layers, random weights and a vocabulary of
// bytes. It talks nonsense, but an engine loads and samples it like any other. The same every time.
func tinyModel() []byte {
	const (
		width, layers, heads, inner, window = 64, 2, 4, 128, 4096
		f32                                 = 0 // type of a tensor
		normal, unknown, control, raw       = 1, 2, 3, 6
	)
	tokens, kinds := []string{"<unk>", "<s>", "</s>"}, []int32{unknown, control, control}
	for b := range 256 {
		tokens, kinds = append(tokens, fmt.Sprintf("<0x%02X>", b)), append(kinds, raw)
	}
	for c := 'a'; c <= 'z'; c++ {
		tokens, kinds = append(tokens, string(c)), append(kinds, normal)
	}
	tokens, kinds = append(tokens, "\u2581"), append(kinds, normal) // how this kind of vocabulary writes a space
	scores := make([]float32, len(tokens))
	vocabulary := uint64(len(tokens))

	type tensor struct {
		name string
		dims []uint64
	}
	tensors := []tensor{
		{"token_embd.weight", []uint64{width, vocabulary}}, {"output_norm.weight", []uint64{width}}, {"output.weight", []uint64{width, vocabulary}},
	}
	for n := range layers {
		for _, t := range []tensor{
			{"attn_norm", []uint64{width}},
			{"attn_q", []uint64{width, width}},
			{"attn_k", []uint64{width, width}},
			{"attn_v", []uint64{width, width}},
			{"attn_output", []uint64{width, width}},
			{"ffn_norm", []uint64{width}},
			{"ffn_gate", []uint64{width, inner}},
			{"ffn_up", []uint64{width, inner}},
			{"ffn_down", []uint64{inner, width}},
		} {
			tensors = append(tensors, tensor{fmt.Sprintf("blk.%d.%s.weight", n, t.name), t.dims})
		}
	}
	facts := []struct {
		key   string
		value any
	}{
		{"general.architecture", "llama"},
		{"general.name", "tiny"},
		{"llama.context_length", uint32(window)},
		{"llama.embedding_length", uint32(width)},
		{"llama.block_count", uint32(layers)},
		{"llama.feed_forward_length", uint32(inner)},
		{"llama.attention.head_count", uint32(heads)},
		{"llama.attention.head_count_kv", uint32(heads)},
		{"llama.attention.layer_norm_rms_epsilon", float32(1e-5)},
		{"llama.rope.dimension_count", uint32(width / heads)},
		{"llama.vocab_size", uint32(vocabulary)},
		{"tokenizer.ggml.model", "llama"},
		{"tokenizer.ggml.tokens", tokens},
		{"tokenizer.ggml.scores", scores},
		{"tokenizer.ggml.token_type", kinds},
		{"tokenizer.ggml.unknown_token_id", uint32(0)},
		{"tokenizer.ggml.bos_token_id", uint32(1)},
		{"tokenizer.ggml.eos_token_id", uint32(2)},
	}

	w := &ggufWriter{}
	w.WriteString("GGUF")
	w.put(uint32(3), uint64(len(tensors)), uint64(len(facts)))
	for _, f := range facts {
		w.text(f.key)
		w.value(f.value)
	}
	var at uint64
	for _, t := range tensors {
		w.text(t.name)
		w.put(uint32(len(t.dims)), t.dims, uint32(f32), at)
		at = aligned(at + 4*elements(t.dims))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, t := range tensors {
		w.align()
		weights := make([]float32, elements(t.dims))
		for i := range weights {
			if weights[i] = float32(random.NormFloat64()) * 0.2; len(t.dims) == 1 {
				weights[i] = 1 // a norm
			}
		}
		w.put(weights)
	}
	return w.Bytes()
}

func elements(dims []uint64) uint64 {
	n := uint64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

func aligned(n uint64) uint64 { return (n + 31) / 32 * 32 }

// ggufWriter writes the parts of such a file: little-endian, texts and lists with their length before them.
type ggufWriter struct{ bytes.Buffer }

func (w *ggufWriter) put(values ...any) {
	for _, v := range values {
		_ = binary.Write(w, binary.LittleEndian, v)
	}
}

func (w *ggufWriter) text(s string) {
	w.put(uint64(len(s)))
	w.WriteString(s)
}

func (w *ggufWriter) align() { w.Write(make([]byte, aligned(uint64(w.Len()))-uint64(w.Len()))) }

// value writes a value behind the number of its type.
func (w *ggufWriter) value(v any) {
	const number, signed, float, text, list = 4, 5, 6, 8, 9
	switch v := v.(type) {
	case uint32:
		w.put(uint32(number), v)
	case float32:
		w.put(uint32(float), v)
	case string:
		w.put(uint32(text))
		w.text(v)
	case []string:
		w.put(uint32(list), uint32(text), uint64(len(v)))
		for _, s := range v {
			w.text(s)
		}
	case []float32:
		w.put(uint32(list), uint32(float), uint64(len(v)), v)
	case []int32:
		w.put(uint32(list), uint32(signed), uint64(len(v)), v)
	default:
		panic(fmt.Sprintf("no value of a model file: %T", v))
	}
}
