/* Prints the square root of each number on its input, by Newton's method. The answers are rounded:
 *
 *   pawl eval --cases examples/cases/roots --tolerance 1e-4 examples/cases/roots.c
 */
#include <stdio.h>

int main(void) {
	double x;
	while (scanf("%lf", &x) == 1) {
		double root = x > 1 ? x : 1;
		for (int i = 0; i < 60; i++)
			root = (root + x / root) / 2;
		printf("%.12g\n", root);
	}
	return 0;
}
