! VPENTA: pentadiagonal systems along lines, three right-hand sides at once, by elimination without pivoting.  m(., ., 1..5) are the
! diagonals, from x(j-2) to x(j+2); the last two become those of U over a unit diagonal.  f becomes x.
#include "sizes.h"

! All lines in the innermost loop: vectors with a stride of a power of two.
subroutine vpenta_unchanged(m, f) bind(c, name='vpenta_unchanged_'//SET)
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  integer, parameter :: n = VPENTA_ORDER, lines = VPENTA_LINES
  real(c_double), intent(inout) :: m(n, lines, 5), f(n, lines, 3)
  real(c_double) :: below, pivot
  integer :: j, k
  do k = 1, lines
    pivot = 1/m(1, k, 3)
    m(1, k, 4) = m(1, k, 4)*pivot
    m(1, k, 5) = m(1, k, 5)*pivot
    f(1, k, 1) = f(1, k, 1)*pivot
    f(1, k, 2) = f(1, k, 2)*pivot
    f(1, k, 3) = f(1, k, 3)*pivot
  end do
  do k = 1, lines
    below = m(2, k, 2)
    pivot = 1/(m(2, k, 3) - below*m(1, k, 4))
    m(2, k, 4) = (m(2, k, 4) - below*m(1, k, 5))*pivot
    m(2, k, 5) = m(2, k, 5)*pivot
    f(2, k, 1) = (f(2, k, 1) - below*f(1, k, 1))*pivot
    f(2, k, 2) = (f(2, k, 2) - below*f(1, k, 2))*pivot
    f(2, k, 3) = (f(2, k, 3) - below*f(1, k, 3))*pivot
  end do
  do j = 3, n
    do k = 1, lines
      below = m(j, k, 2) - m(j, k, 1)*m(j - 2, k, 4)
      pivot = 1/(m(j, k, 3) - m(j, k, 1)*m(j - 2, k, 5) - below*m(j - 1, k, 4))
      m(j, k, 4) = (m(j, k, 4) - below*m(j - 1, k, 5))*pivot
      m(j, k, 5) = m(j, k, 5)*pivot
      f(j, k, 1) = (f(j, k, 1) - m(j, k, 1)*f(j - 2, k, 1) - below*f(j - 1, k, 1))*pivot
      f(j, k, 2) = (f(j, k, 2) - m(j, k, 1)*f(j - 2, k, 2) - below*f(j - 1, k, 2))*pivot
      f(j, k, 3) = (f(j, k, 3) - m(j, k, 1)*f(j - 2, k, 3) - below*f(j - 1, k, 3))*pivot
    end do
  end do
  do k = 1, lines
    f(n - 1, k, 1) = f(n - 1, k, 1) - m(n - 1, k, 4)*f(n, k, 1)
    f(n - 1, k, 2) = f(n - 1, k, 2) - m(n - 1, k, 4)*f(n, k, 2)
    f(n - 1, k, 3) = f(n - 1, k, 3) - m(n - 1, k, 4)*f(n, k, 3)
  end do
  do j = n - 2, 1, -1
    do k = 1, lines
      f(j, k, 1) = f(j, k, 1) - m(j, k, 4)*f(j + 1, k, 1) - m(j, k, 5)*f(j + 2, k, 1)
      f(j, k, 2) = f(j, k, 2) - m(j, k, 4)*f(j + 1, k, 2) - m(j, k, 5)*f(j + 2, k, 2)
      f(j, k, 3) = f(j, k, 3) - m(j, k, 4)*f(j + 1, k, 3) - m(j, k, 5)*f(j + 2, k, 3)
    end do
  end do
end subroutine vpenta_unchanged

! Indices permuted: the lines of a strip lie side by side.
subroutine vpenta_optimised(m, f) bind(c, name='vpenta_optimised_'//SET)
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  integer, parameter :: n = VPENTA_ORDER, strip = VPENTA_STRIP, strips = VPENTA_LINES/VPENTA_STRIP
  real(c_double), intent(inout) :: m(strip, n, 5, strips), f(strip, n, 3, strips)
  real(c_double) :: below, pivot
  integer :: h, j, k
  do h = 1, strips
    do k = 1, strip
      pivot = 1/m(k, 1, 3, h)
      m(k, 1, 4, h) = m(k, 1, 4, h)*pivot
      m(k, 1, 5, h) = m(k, 1, 5, h)*pivot
      f(k, 1, 1, h) = f(k, 1, 1, h)*pivot
      f(k, 1, 2, h) = f(k, 1, 2, h)*pivot
      f(k, 1, 3, h) = f(k, 1, 3, h)*pivot
    end do
    do k = 1, strip
      below = m(k, 2, 2, h)
      pivot = 1/(m(k, 2, 3, h) - below*m(k, 1, 4, h))
      m(k, 2, 4, h) = (m(k, 2, 4, h) - below*m(k, 1, 5, h))*pivot
      m(k, 2, 5, h) = m(k, 2, 5, h)*pivot
      f(k, 2, 1, h) = (f(k, 2, 1, h) - below*f(k, 1, 1, h))*pivot
      f(k, 2, 2, h) = (f(k, 2, 2, h) - below*f(k, 1, 2, h))*pivot
      f(k, 2, 3, h) = (f(k, 2, 3, h) - below*f(k, 1, 3, h))*pivot
    end do
    do j = 3, n
      do k = 1, strip
        below = m(k, j, 2, h) - m(k, j, 1, h)*m(k, j - 2, 4, h)
        pivot = 1/(m(k, j, 3, h) - m(k, j, 1, h)*m(k, j - 2, 5, h) - below*m(k, j - 1, 4, h))
        m(k, j, 4, h) = (m(k, j, 4, h) - below*m(k, j - 1, 5, h))*pivot
        m(k, j, 5, h) = m(k, j, 5, h)*pivot
        f(k, j, 1, h) = (f(k, j, 1, h) - m(k, j, 1, h)*f(k, j - 2, 1, h) - below*f(k, j - 1, 1, h))*pivot
        f(k, j, 2, h) = (f(k, j, 2, h) - m(k, j, 1, h)*f(k, j - 2, 2, h) - below*f(k, j - 1, 2, h))*pivot
        f(k, j, 3, h) = (f(k, j, 3, h) - m(k, j, 1, h)*f(k, j - 2, 3, h) - below*f(k, j - 1, 3, h))*pivot
      end do
    end do
    do k = 1, strip
      f(k, n - 1, 1, h) = f(k, n - 1, 1, h) - m(k, n - 1, 4, h)*f(k, n, 1, h)
      f(k, n - 1, 2, h) = f(k, n - 1, 2, h) - m(k, n - 1, 4, h)*f(k, n, 2, h)
      f(k, n - 1, 3, h) = f(k, n - 1, 3, h) - m(k, n - 1, 4, h)*f(k, n, 3, h)
    end do
    do j = n - 2, 1, -1
      do k = 1, strip
        f(k, j, 1, h) = f(k, j, 1, h) - m(k, j, 4, h)*f(k, j + 1, 1, h) - m(k, j, 5, h)*f(k, j + 2, 1, h)
        f(k, j, 2, h) = f(k, j, 2, h) - m(k, j, 4, h)*f(k, j + 1, 2, h) - m(k, j, 5, h)*f(k, j + 2, 2, h)
        f(k, j, 3, h) = f(k, j, 3, h) - m(k, j, 4, h)*f(k, j + 1, 3, h) - m(k, j, 5, h)*f(k, j + 2, 3, h)
      end do
    end do
  end do
end subroutine vpenta_optimised
