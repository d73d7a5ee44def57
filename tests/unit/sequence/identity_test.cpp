// What may be taken for what: salts, namespaces, extras, and keys that collide.
#include <cstring>

#include "sequence/block_key.hpp"
#include "support/seq_rig.hpp"

using namespace kvo;
using namespace kvo::test;

namespace {

// A prompt with a picture: text, placeholders, text. Pictures with equal placeholder tokens.
struct picture_prompt {
    uint32_t n_before = 64;
    std::string picture;  // empty: there is one, but nothing says which
    tokens_t tokens() const {
        return make_tokens(n_before) + tokens_t(32, 31999) + make_tokens(16, 5);
    }
};

kvo_seq_t begin_with(seq_rig& rig, const picture_prompt& p) {
    const kvo_seq_t seq = rig.begin();
    REQUIRE(rig.s->extras(seq, p.n_before, 32, p.picture.empty() ? nullptr : p.picture.data(),
                          p.picture.size()) == KVO_OK);
    return seq;
}

// Stores a prompt whole; the answer's first token makes its last block complete.
void store(seq_rig& rig, const picture_prompt& p) {
    const kvo_seq_t seq = begin_with(rig, p);
    const tokens_t tokens = p.tokens();
    const auto n = static_cast<uint32_t>(tokens.size());
    const auto table = rig.table_for(0, n);
    REQUIRE(rig.lookup(seq, tokens).result == KVO_OK);
    std::vector<uint64_t> input(tokens.begin(), tokens.end());
    for (uint32_t i = p.n_before; i < p.n_before + 32; ++i) {
        input[i] += uint64_t{static_cast<uint8_t>(p.picture.empty() ? '?' : p.picture[0])} << 32;
    }
    rig.compute(table, input, 0, n);
    REQUIRE(rig.prefilled(seq, table, n) == KVO_OK);
    rig.settle();
    REQUIRE(rig.s->end(seq) == KVO_OK);
}

uint32_t found(seq_rig& rig, const picture_prompt& p, const tokens_t& more = {}) {
    const kvo_seq_t seq = begin_with(rig, p);
    const uint32_t n = rig.lookup(seq, p.tokens() + more).n;
    REQUIRE(rig.s->end(seq) == KVO_OK);
    return n / 16;
}

const std::string kX = std::string(28, 'x') + "beef", kY = std::string(28, 'y') + "beef";

}  // namespace

TEST_CASE("The same question about another picture shares the text before it and no more") {
    seq_rig rig;
    store(rig, {64, kX});
    CHECK(rig.stats().stored_blocks == 7);
    CHECK(found(rig, {64, kX}, {1}) == 7);
    CHECK(found(rig, {64, kX}) == 6);  // the last token is always computed
    CHECK(found(rig, {64, kY}, {1}) == 4);
    CHECK(found(rig, {48, kX}, {1}) == 3);  // moved forward
    CHECK(found(rig, {64, ""}, {1}) == 4);  // a picture without digest
    CHECK(rig.left_over() == "");
}

TEST_CASE("Content without identity is neither stored nor matched, nor is what follows") {
    seq_rig rig;
    store(rig, {64, ""});
    CHECK(rig.stats().stored_blocks == 4);
    CHECK(found(rig, {64, ""}, {1}) == 4);
    CHECK(rig.stored({picture_prompt{}.tokens()}) == 64);
    seq_rig middle;
    store(middle, {60, ""});  // in the middle of a block: that block is not known either
    CHECK(middle.stats().stored_blocks == 3);
}

TEST_CASE("No identity differs from an identity of zeroes") {
    seq_rig rig;
    store(rig, {64, std::string(4, '\0')});
    CHECK(found(rig, {64, std::string(4, '\0')}, {1}) == 7);
    CHECK(found(rig, {64, std::string(5, '\0')}, {1}) == 4);
    CHECK(rig.stored(picture_prompt{}.tokens()) == 64);  // no picture at all
}

TEST_CASE("Extras are given before their tokens and in order") {
    seq_rig rig;
    const kvo_seq_t seq = rig.begin();
    REQUIRE(rig.s->extras(seq, 10, 4, "a", 1) == KVO_OK);
    REQUIRE(rig.s->extras(seq, 10, 4, "a", 1) == KVO_OK);  // the same again
    CHECK(rig.s->extras(seq, 9, 4, "b", 1) == KVO_E_ARGUMENT);
    CHECK(rig.s->extras(seq, 20, 0, "b", 1) == KVO_E_ARGUMENT);
    CHECK(rig.s->extras(seq, 20, 4, nullptr, 3) == KVO_E_ARGUMENT);
    CHECK(rig.s->extras(seq, UINT32_MAX - 1, 4, "b", 1) == KVO_E_RANGE);
    REQUIRE(rig.lookup(seq, make_tokens(40)).result == KVO_OK);
    CHECK(rig.s->extras(seq, 39, 4, "b", 1) == KVO_E_ARGUMENT);
    CHECK(rig.s->extras(seq, 40, 4, "b", 1) == KVO_OK);
}

TEST_CASE("Extras for which there is no room count as content without identity") {
    rig_setup setup;
    setup.adjust = [](kvo_config_t* c) { c->max_extra_bytes = 128; };
    seq_rig rig(setup);
    const kvo_seq_t seq = rig.begin();
    REQUIRE(rig.s->extras(seq, 16, 4, std::string(64, 'a').data(), 64) == KVO_OK);
    CHECK(rig.s->extras(seq, 40, 4, std::string(65, 'b').data(), 65) == KVO_E_OPS_FULL);
    CHECK_THAT(error_text(), contains("max_extra_bytes 128"));
    const tokens_t prompt = make_tokens(80);
    const auto table = rig.table_for(0, 80);
    REQUIRE(rig.lookup(seq, prompt).result == KVO_OK);
    rig.compute(table, prompt, 0, 80);
    REQUIRE(rig.prefilled(seq, table, 80) == KVO_OK);
    CHECK(rig.info(seq).n_stored_blocks == 2);
    rig.settle();
    kvo_seq_options_t options = KVO_SEQ_OPTIONS_INIT;
    const std::string salt(100, 's');
    options.salt = salt.data();
    options.salt_bytes = salt.size();
    kvo_seq_t none{};
    CHECK(rig.s->begin({}, options, &none) == KVO_E_OPS_FULL);
    REQUIRE(rig.s->end(seq) == KVO_OK);
    // The block that overlaps the extra keeps its room until it leaves the cache.
    CHECK(rig.s->room().extra_bytes_used == 64);
    REQUIRE(rig.c->reset() == KVO_OK);
    rig.settle();
    CHECK(rig.s->room().extra_bytes_used == 0);
}

TEST_CASE("Another salt, namespace or fingerprint is another prompt") {
    seq_rig rig;
    const tokens_t prompt = make_tokens(64);
    rig.run_request(prompt, 0, "tenant a");
    CHECK(rig.stored(prompt, "tenant a") == 64);
    CHECK(rig.stored(prompt, "tenant b") == 0);
    CHECK(rig.stored(prompt) == 0);
    kvo_ns_t ns{};
    const kvo_ns_options_t options = KVO_NS_OPTIONS_INIT;
    REQUIRE(rig.c->ns_open("other", options, &ns) == KVO_OK);
    const kvo_seq_t seq = rig.begin("tenant a", 0, ns);
    CHECK(rig.lookup(seq, prompt).n == 0);
}

TEST_CASE("A reloaded adapter under a new generation matches nothing of the old one") {
    seq_rig rig;
    const kvo_ns_options_t plain = KVO_NS_OPTIONS_INIT;
    const tokens_t prompt = make_tokens(97);
    kvo_ns_t ns[4]{};
    const char* const names[] = {"base|lora:x|1", "base|lora:x2|1", "base|lora:x|2", ""};
    for (int i = 0; i < 4; ++i) REQUIRE(rig.c->ns_open(names[i], plain, &ns[i]) == KVO_OK);
    const auto table = rig.table_for(0, 97);
    const auto in = [&](kvo_ns_t where) {
        const kvo_seq_t seq = rig.begin("", 0, where);
        const uint32_t n = rig.lookup(seq, prompt).n;
        REQUIRE(rig.s->end(seq) == KVO_OK);
        return n;
    };
    for (const int i : {0, 1, 3}) {
        const kvo_seq_t seq = rig.begin("", 0, ns[i]);
        REQUIRE(rig.lookup(seq, prompt).n == 0);
        rig.compute(table, prompt, 0, 97);
        REQUIRE(rig.prefilled(seq, table, 97) == KVO_OK);
        rig.settle();
        REQUIRE(rig.s->end(seq) == KVO_OK);
    }
    const kvo_seq_t loading = rig.begin("", 0, ns[0]);
    REQUIRE(rig.lookup(loading, prompt).n == 96);
    const auto dst = rig.table_for(20, 97);
    rig.scribble(dst);
    const kvo_op_t load = rig.prefill(loading, dst, 96);
    kvo_op_t purge{};
    REQUIRE(rig.c->purge(ns[0], nullptr, &purge) == KVO_OK);
    const kvo_completion_t done = rig.take(load);
    // A miss, or the old bytes for the old request; never something else.
    CHECK(rig.n_right(dst, prompt, done.n_done * 16) == done.n_done * 16);
    kvo_completion_t purged{};
    REQUIRE(rig.c->op_test(purge, &purged) == KVO_OK);
    REQUIRE(rig.s->end(loading) == KVO_OK);
    CHECK(in(ns[0]) == 0);
    CHECK(in(ns[1]) == 96);
    CHECK(in(ns[2]) == 0);
    CHECK(in(ns[3]) == 96);
}

namespace {

// Keys by a rule of the test: the same one for all blocks with this index in their sequence.
void by_index_only(void*, const block_identity& of, kvo_key_t* key) {
    *key = kvo_key_t{};
    const uint32_t index = of.begin / seq_rig::kBlock + 1;
    std::memcpy(key->bytes, &index, sizeof index);
}

rig_setup colliding() {
    rig_setup setup;
    setup.weaken.change = by_index_only;
    return setup;
}

}  // namespace

TEST_CASE("When keys collide, other tokens are a miss and their blocks are not stored") {
    seq_rig rig(colliding());
    const tokens_t a = make_tokens(48, 1), b = make_tokens(48, 2);
    rig.run_request(a);
    CHECK(rig.stored(a) == 48);
    CHECK(rig.stored(b) == 0);
    CHECK(rig.run_request(b, 10) == 0);
    CHECK(rig.stored(b) == 0);
    CHECK(rig.stored(a) == 48);
    CHECK(rig.run_request(a + tokens_t{9}, 20) == 48);
    CHECK(rig.stats().identity_mismatches > 0);
}

TEST_CASE("When keys collide, another parent is a miss") {
    seq_rig rig(colliding());
    const tokens_t end = make_tokens(16, 9);
    const tokens_t a = make_tokens(16, 1) + end, b = make_tokens(16, 2) + end;
    rig.run_request(a);
    CHECK(rig.stored(b) == 0);
    rig.run_request(b, 10);
    CHECK(rig.stored(b) == 0);
    // The first block is local and its entry belongs to a: b's second block must not be a's.
    const kvo_seq_t seq = rig.begin();
    CHECK(rig.lookup(seq, b + tokens_t{1}, 16).n == 16);
    REQUIRE(rig.s->end(seq) == KVO_OK);
    CHECK(rig.stored(a) == 32);
}

TEST_CASE("When keys collide, a block is hung on no stranger, however the chunks fall") {
    seq_rig rig(colliding());
    const tokens_t end = make_tokens(16, 9);
    const tokens_t a = make_tokens(16, 1), b = make_tokens(16, 2) + end;
    rig.run_request(a);
    REQUIRE(rig.stored(a) == 16);
    // b's first block collides with a's and is refused; its second comes in a call of its own.
    const kvo_seq_t seq = rig.begin();
    const auto table = rig.table_for(10, 32);
    REQUIRE(rig.lookup(seq, b + tokens_t{1}).n == 0);
    for (const uint32_t to : {16u, 32u}) {
        rig.compute(table, b, to - 16, to);
        REQUIRE(rig.prefilled(seq, table, to) == KVO_OK);
        rig.settle();
    }
    REQUIRE(rig.s->end(seq) == KVO_OK);
    CHECK(rig.stored(b) == 0);
    CHECK(rig.stored(a + end) == 16);
    CHECK(rig.left_over() == "");
}

TEST_CASE("When keys collide, asking twice adopts nothing") {
    seq_rig rig(colliding());
    const tokens_t end = make_tokens(16, 9);
    const tokens_t a = make_tokens(16, 1), b = make_tokens(16, 2);
    rig.run_request(a + end);
    // a's first block leaves as suspect, so its second is an orphan.
    const kvo_seq_t loading = rig.begin();
    REQUIRE(rig.lookup(loading, a + end + tokens_t{1}).n == 32);
    rig.device.fail_batch = 0;
    rig.device.fail_batch_after = 0;
    const std::vector<uint32_t> apart{30, 32};
    CHECK(rig.take(rig.prefill(loading, apart, 32)).status == KVO_E_TRANSFER);
    REQUIRE(rig.s->end(loading) == KVO_OK);
    REQUIRE(rig.stored(a) == 0);
    rig.run_request(b, 10);
    const kvo_seq_t seq = rig.begin();
    CHECK(rig.lookup(seq, b + end + tokens_t{1}).n == 16);
    CHECK(rig.lookup(seq, b + end + tokens_t{1}).n == 16);
    REQUIRE(rig.s->end(seq) == KVO_OK);
}

TEST_CASE("When keys collide, another salt or other extras are a miss") {
    seq_rig rig(colliding());
    const tokens_t prompt = make_tokens(48);
    rig.run_request(prompt, 0, "a");
    CHECK(rig.stored(prompt, "a") == 48);
    CHECK(rig.stored(prompt, "b") == 0);
    CHECK(rig.stored(prompt) == 0);
    seq_rig pictures(colliding());
    store(pictures, {64, kX});
    CHECK(found(pictures, {64, kX}, {1}) == 7);
    CHECK(found(pictures, {64, kY}, {1}) == 4);
}
