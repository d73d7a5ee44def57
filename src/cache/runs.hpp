// Lists of numbers over one fixed pool of pages, for what tickets, reservations and long store
// calls hold. A run grows at its end, shrinks from its end and is walked both ways. Not thread-safe
// (cache lock). No allocation after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "base/math.hpp"

namespace kvo {

struct id_run {
    uint32_t first = UINT32_MAX, last = UINT32_MAX;  // pages
    uint32_t n = 0;
};

class run_room {
public:
    static constexpr uint32_t kPerPage = 14;  // with two links a page is one cache line

    // Pages for n numbers in up to `runs` lists.
    static uint64_t pages_for(uint64_t n, uint64_t runs) { return div_up(n, kPerPage) + runs; }
    static uint64_t bytes_for(uint64_t pages) { return pages * sizeof(page); }

    void reset(uint64_t pages) {
        pages_.assign(pages, page{});
        for (uint32_t i = 0; i < pages; ++i) pages_[i].next = i + 1 < pages ? i + 1 : kNone;
        free_ = pages > 0 ? 0 : kNone;
    }

    // False when no page is free; nothing changed then.
    bool push(id_run& r, uint32_t value) {
        const uint32_t at = r.n % kPerPage;
        if (at == 0) {
            if (free_ == kNone) return false;
            const uint32_t fresh = free_;
            free_ = pages_[fresh].next;
            pages_[fresh].next = kNone;
            pages_[fresh].prev = r.last;
            (r.last == kNone ? r.first : pages_[r.last].next) = fresh;
            r.last = fresh;
        }
        pages_[r.last].values[at] = value;
        ++r.n;
        return true;
    }
    // r.n > 0.
    uint32_t pop(id_run& r) {
        const uint32_t at = --r.n % kPerPage;
        const uint32_t value = pages_[r.last].values[at];
        if (at == 0) {
            const uint32_t empty = r.last;
            r.last = pages_[empty].prev;
            (r.last == kNone ? r.first : pages_[r.last].next) = kNone;
            pages_[empty].next = free_;
            free_ = empty;
        }
        return value;
    }
    // Gives all pages back at once.
    void clear(id_run& r) {
        if (r.last != kNone) {
            pages_[r.last].next = free_;
            free_ = r.first;
        }
        r = id_run{};
    }

    // Stands on one number of a run. Good until the run changes.
    class cursor {
    public:
        cursor(run_room& room, const id_run& r, uint32_t index)
            : room_(&room), at_(index % kPerPage) {
            const uint32_t page_index = index / kPerPage, last_index = (r.n - 1) / kPerPage;
            if (r.n == 0) return;
            if (page_index <= last_index / 2) {
                page_ = r.first;
                for (uint32_t i = 0; i < page_index; ++i) page_ = room.pages_[page_].next;
            } else {
                page_ = r.last;
                for (uint32_t i = last_index; i > page_index; --i) page_ = room.pages_[page_].prev;
            }
        }
        uint32_t& operator*() const { return room_->pages_[page_].values[at_]; }
        cursor& operator++() {
            if (++at_ == kPerPage) {
                at_ = 0;
                page_ = room_->pages_[page_].next;
            }
            return *this;
        }
        cursor& operator--() {
            if (at_-- == 0) {
                at_ = kPerPage - 1;
                page_ = room_->pages_[page_].prev;
            }
            return *this;
        }

    private:
        run_room* room_;
        uint32_t page_ = kNone, at_;
    };
    cursor at(const id_run& r, uint32_t index) { return cursor(*this, r, index); }

private:
    static constexpr uint32_t kNone = UINT32_MAX;
    struct page {
        uint32_t values[kPerPage];
        uint32_t next, prev;
    };
    std::vector<page> pages_;
    uint32_t free_ = kNone;
};

}  // namespace kvo
