! BTRIX: block tridiagonal systems of 5 x 5 blocks along lines: A(j) x(j-1) + B(j) x(j) + C(j) x(j+1) = s(j), by elimination
! without pivoting; s becomes x.  In the end B has L U, the diagonal of U inverted, and C the blocks over the unit diagonal.
#include "sizes.h"

! All lines in the innermost loop: vectors with the stride of a whole line of blocks.
subroutine btrix_unchanged(a, b, c, s) bind(c, name='btrix_unchanged_'//SET)
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  integer, parameter :: n = BTRIX_BLOCKS, lines = BTRIX_LINES
  real(c_double), intent(in) :: a(5, 5, n, lines)
  real(c_double), intent(inout) :: b(5, 5, n, lines), c(5, 5, n, lines), s(5, n, lines)
  integer :: j, k, p, q, r
  do j = 1, n
    if (j > 1) then
      do p = 1, 5
        do r = 1, 5
          do q = 1, 5
            do k = 1, lines
              b(p, q, j, k) = b(p, q, j, k) - a(p, r, j, k)*c(r, q, j - 1, k)
            end do
          end do
          do k = 1, lines
            s(p, j, k) = s(p, j, k) - a(p, r, j, k)*s(r, j - 1, k)
          end do
        end do
      end do
    end if
    do r = 1, 5
      do k = 1, lines
        b(r, r, j, k) = 1/b(r, r, j, k)
      end do
      do p = r + 1, 5
        do k = 1, lines
          b(p, r, j, k) = b(p, r, j, k)*b(r, r, j, k)
        end do
        do q = r + 1, 5
          do k = 1, lines
            b(p, q, j, k) = b(p, q, j, k) - b(p, r, j, k)*b(r, q, j, k)
          end do
        end do
        do q = 1, 5
          do k = 1, lines
            c(p, q, j, k) = c(p, q, j, k) - b(p, r, j, k)*c(r, q, j, k)
          end do
        end do
        do k = 1, lines
          s(p, j, k) = s(p, j, k) - b(p, r, j, k)*s(r, j, k)
        end do
      end do
    end do
    do r = 5, 1, -1
      do q = 1, 5
        do k = 1, lines
          c(r, q, j, k) = c(r, q, j, k)*b(r, r, j, k)
        end do
      end do
      do k = 1, lines
        s(r, j, k) = s(r, j, k)*b(r, r, j, k)
      end do
      do p = 1, r - 1
        do q = 1, 5
          do k = 1, lines
            c(p, q, j, k) = c(p, q, j, k) - b(p, r, j, k)*c(r, q, j, k)
          end do
        end do
        do k = 1, lines
          s(p, j, k) = s(p, j, k) - b(p, r, j, k)*s(r, j, k)
        end do
      end do
    end do
  end do
  do j = n - 1, 1, -1
    do p = 1, 5
      do r = 1, 5
        do k = 1, lines
          s(p, j, k) = s(p, j, k) - c(p, r, j, k)*s(r, j + 1, k)
        end do
      end do
    end do
  end do
end subroutine btrix_unchanged

! Indices permuted: the lines of a strip lie side by side.
subroutine btrix_optimised(a, b, c, s) bind(c, name='btrix_optimised_'//SET)
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  integer, parameter :: n = BTRIX_BLOCKS, strip = BTRIX_STRIP, strips = BTRIX_LINES/BTRIX_STRIP
  real(c_double), intent(in) :: a(strip, 5, 5, n, strips)
  real(c_double), intent(inout) :: b(strip, 5, 5, n, strips), c(strip, 5, 5, n, strips), s(strip, 5, n, strips)
  integer :: h, j, k, p, q, r
  do h = 1, strips
    do j = 1, n
      if (j > 1) then
        do p = 1, 5
          do r = 1, 5
            do q = 1, 5
              do k = 1, strip
                b(k, p, q, j, h) = b(k, p, q, j, h) - a(k, p, r, j, h)*c(k, r, q, j - 1, h)
              end do
            end do
            do k = 1, strip
              s(k, p, j, h) = s(k, p, j, h) - a(k, p, r, j, h)*s(k, r, j - 1, h)
            end do
          end do
        end do
      end if
      do r = 1, 5
        do k = 1, strip
          b(k, r, r, j, h) = 1/b(k, r, r, j, h)
        end do
        do p = r + 1, 5
          do k = 1, strip
            b(k, p, r, j, h) = b(k, p, r, j, h)*b(k, r, r, j, h)
          end do
          do q = r + 1, 5
            do k = 1, strip
              b(k, p, q, j, h) = b(k, p, q, j, h) - b(k, p, r, j, h)*b(k, r, q, j, h)
            end do
          end do
          do q = 1, 5
            do k = 1, strip
              c(k, p, q, j, h) = c(k, p, q, j, h) - b(k, p, r, j, h)*c(k, r, q, j, h)
            end do
          end do
          do k = 1, strip
            s(k, p, j, h) = s(k, p, j, h) - b(k, p, r, j, h)*s(k, r, j, h)
          end do
        end do
      end do
      do r = 5, 1, -1
        do q = 1, 5
          do k = 1, strip
            c(k, r, q, j, h) = c(k, r, q, j, h)*b(k, r, r, j, h)
          end do
        end do
        do k = 1, strip
          s(k, r, j, h) = s(k, r, j, h)*b(k, r, r, j, h)
        end do
        do p = 1, r - 1
          do q = 1, 5
            do k = 1, strip
              c(k, p, q, j, h) = c(k, p, q, j, h) - b(k, p, r, j, h)*c(k, r, q, j, h)
            end do
          end do
          do k = 1, strip
            s(k, p, j, h) = s(k, p, j, h) - b(k, p, r, j, h)*s(k, r, j, h)
          end do
        end do
      end do
    end do
    do j = n - 1, 1, -1
      do p = 1, 5
        do r = 1, 5
          do k = 1, strip
            s(k, p, j, h) = s(k, p, j, h) - c(k, p, r, j, h)*s(k, r, j + 1, h)
          end do
        end do
      end do
    end do
  end do
end subroutine btrix_optimised
