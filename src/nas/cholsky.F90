! CHOLSKY: many symmetric positive definite band matrices, factored as L L^T, each with some right-hand sides.
! a(., k, i) is the element (i, i - k) of the matrix, in the end of L, its diagonal inverted.
#include "sizes.h"

! All systems in the innermost loop: long vectors, and the whole of the data for each step.
subroutine cholsky_unchanged(a, b) bind(c, name='cholsky_unchanged_'//SET)
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  integer, parameter :: systems = CHOLSKY_SYSTEMS, n = CHOLSKY_ORDER, m = CHOLSKY_BAND, sides = CHOLSKY_RHS
  real(c_double), intent(inout) :: a(systems, 0:m, n), b(systems, n, sides)
  integer :: l, i, k, p, r
  do i = 1, n
    do k = min(m, i - 1), 1, -1
      do p = k + 1, min(m, i - 1)
        do l = 1, systems
          a(l, k, i) = a(l, k, i) - a(l, p, i)*a(l, p - k, i - k)
        end do
      end do
      do l = 1, systems
        a(l, k, i) = a(l, k, i)*a(l, 0, i - k)
      end do
    end do
    do p = 1, min(m, i - 1)
      do l = 1, systems
        a(l, 0, i) = a(l, 0, i) - a(l, p, i)**2
      end do
    end do
    do l = 1, systems
      a(l, 0, i) = 1/sqrt(a(l, 0, i))
    end do
  end do
  do r = 1, sides
    do i = 1, n
      do p = 1, min(m, i - 1)
        do l = 1, systems
          b(l, i, r) = b(l, i, r) - a(l, p, i)*b(l, i - p, r)
        end do
      end do
      do l = 1, systems
        b(l, i, r) = b(l, i, r)*a(l, 0, i)
      end do
    end do
    do i = n, 1, -1
      do p = 1, min(m, n - i)
        do l = 1, systems
          b(l, i, r) = b(l, i, r) - a(l, p, i + p)*b(l, i + p, r)
        end do
      end do
      do l = 1, systems
        b(l, i, r) = b(l, i, r)*a(l, 0, i)
      end do
    end do
  end do
end subroutine cholsky_unchanged

! Indices permuted: a strip of systems lies together, stays in the first-level cache, and is done before the next.
subroutine cholsky_optimised(a, b) bind(c, name='cholsky_optimised_'//SET)
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  integer, parameter :: strip = CHOLSKY_STRIP, strips = CHOLSKY_SYSTEMS/CHOLSKY_STRIP
  integer, parameter :: n = CHOLSKY_ORDER, m = CHOLSKY_BAND, sides = CHOLSKY_RHS
  real(c_double), intent(inout) :: a(strip, 0:m, n, strips), b(strip, n, sides, strips)
  integer :: s, l, i, k, p, r
  do s = 1, strips
    do i = 1, n
      do k = min(m, i - 1), 1, -1
        do p = k + 1, min(m, i - 1)
          do l = 1, strip
            a(l, k, i, s) = a(l, k, i, s) - a(l, p, i, s)*a(l, p - k, i - k, s)
          end do
        end do
        do l = 1, strip
          a(l, k, i, s) = a(l, k, i, s)*a(l, 0, i - k, s)
        end do
      end do
      do p = 1, min(m, i - 1)
        do l = 1, strip
          a(l, 0, i, s) = a(l, 0, i, s) - a(l, p, i, s)**2
        end do
      end do
      do l = 1, strip
        a(l, 0, i, s) = 1/sqrt(a(l, 0, i, s))
      end do
    end do
    do r = 1, sides
      do i = 1, n
        do p = 1, min(m, i - 1)
          do l = 1, strip
            b(l, i, r, s) = b(l, i, r, s) - a(l, p, i, s)*b(l, i - p, r, s)
          end do
        end do
        do l = 1, strip
          b(l, i, r, s) = b(l, i, r, s)*a(l, 0, i, s)
        end do
      end do
      do i = n, 1, -1
        do p = 1, min(m, n - i)
          do l = 1, strip
            b(l, i, r, s) = b(l, i, r, s) - a(l, p, i + p, s)*b(l, i + p, r, s)
          end do
        end do
        do l = 1, strip
          b(l, i, r, s) = b(l, i, r, s)*a(l, 0, i, s)
        end do
      end do
    end do
  end do
end subroutine cholsky_optimised
